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
	o.log = o.logger()
	o.headed = map[string]bool{}
	r := newReloader(o.app, w, nil, nil)
	last := map[v1.Key]shownItem{}
	failed := make(chan error, 1)
	first := true
	stop, err := r.each(ctx, func(ctx context.Context) {
		err := o.look(ctx, r, format, last, first)
		switch {
		case err == nil, ctx.Err() != nil:
		case first:
			select {
			case failed <- err:
			default:
			}
		default:
			fmt.Fprintf(o.err, "warning: %v\n", err)
		}
		first = false
	})
	if err != nil {
		return err
	}
	defer stop()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

// shownItem is an object as it was printed last.
type shownItem struct {
	item registry.Item
	text []byte
}

// look prints what differs from last, and brings last up to date.
func (o *listOptions) look(ctx context.Context, r *reloader, format string, last map[v1.Key]shownItem, first bool) error {
	if !first {
		objects, _, err := r.load(ctx)
		if err != nil {
			return err
		}
		r.w.mcp.replace(ctx, objects)
		r.w.reg.Check(ctx)
	}
	items, _, err := o.collect(ctx, r.w, format == "wide")
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
