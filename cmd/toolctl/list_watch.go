package main

import (
	"bytes"
	"context"
	"fmt"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/registry"
)

// follow prints what is there, and then every object that comes, changes or goes, until ctx
// ends. What cannot be read meanwhile is told on stderr, and the watch goes on.
func (o *listOptions) follow(ctx context.Context, w *workspace, format string) error {
	o.lasting = true
	o.headed = map[string]bool{}
	last := map[v1.Key]shownItem{}
	source := o.source(ctx, w.store)
	if err := o.look(ctx, w, format, last, true); err != nil {
		return err
	}
	changed, err := source.Watch(ctx, func(err error) { fmt.Fprintf(o.err, "warning: %v\n", err) })
	if err != nil {
		return fmt.Errorf("--watch: %w", err)
	}
	for range changed {
		set, err := source.Load(ctx)
		if err == nil {
			w.Replace(set)
			w.reg.Check(ctx)
			err = o.look(ctx, w, format, last, false)
		}
		if err != nil && ctx.Err() == nil {
			fmt.Fprintf(o.err, "warning: %v\n", err)
		}
	}
	return nil
}

// shownItem is an object as it was printed last.
type shownItem struct {
	item registry.Item
	text []byte
}

// look prints what differs from last, and brings last up to date.
func (o *listOptions) look(ctx context.Context, w *workspace, format string, last map[v1.Key]shownItem, first bool) error {
	items, _, err := o.collect(ctx, w, format == "wide")
	if err != nil && (first || len(last) == 0) {
		return err
	}
	var changed []registry.Item
	now := make(map[v1.Key]bool, len(items))
	for _, it := range items {
		text, err := manifest.MarshalJSON(it.Object)
		if err != nil {
			return err
		}
		text = append(text, readyText(it)+it.Reason()...)
		key := it.Object.Head().Key()
		now[key] = true
		if !bytes.Equal(last[key].text, text) {
			last[key] = shownItem{it, text}
			changed = append(changed, it)
		}
	}
	var gone []registry.Item
	for key, was := range last {
		if !now[key] {
			gone = append(gone, was.item)
			delete(last, key)
		}
	}
	if len(changed) > 0 || first {
		if err := o.print(format, changed, len(changed)); err != nil {
			return err
		}
	}
	if len(gone) == 0 {
		return nil
	}
	o.gone = true
	defer func() { o.gone = false }()
	return o.print(format, gone, len(gone))
}
