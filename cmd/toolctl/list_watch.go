package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/registry"
)

// follow prints what is there, and then every object that comes, changes or goes, until ctx
// ends. What cannot be read meanwhile is told on stderr, and the watch goes on.
func (o *listOptions) follow(ctx context.Context, w *action.Workspace, format string) error {
	o.lasting = true
	o.headed = map[string]bool{}
	last := map[v1.Key]shownItem{}
	if err := o.look(ctx, w, format, last, true); err != nil {
		return err
	}
	changed, err := w.Source.Watch(ctx, func(err error) { fmt.Fprintf(o.err, "warning: %v\n", err) })
	if err != nil {
		return fmt.Errorf("--watch: %w", err)
	}
	for range changed {
		set, err := w.Source.Load(ctx)
		if err == nil {
			w.Replace(set)
			w.Registry.Check(ctx)
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
	listEvent
	text []byte
}

// look prints what differs from last, and brings last up to date.
func (o *listOptions) look(ctx context.Context, w *action.Workspace, format string, last map[v1.Key]shownItem, first bool) error {
	r, err := o.verb(format).In(ctx, w)
	if err != nil {
		if r != nil || first || len(last) == 0 {
			return err
		}
		r = &action.Listed{} // what was listed is gone
	}
	o.states = r.Servers
	var events []listEvent
	now := make(map[v1.Key]bool, len(r.Items))
	for _, it := range r.Items {
		text, err := manifest.MarshalJSON(it.Object)
		if err != nil {
			return err
		}
		text = append(text, readyText(it)+it.Reason()...)
		e := listEvent{eventAdded, it, it.Object}
		key := it.Object.Head().Key()
		if s, ok := r.Statuses[key]; ok && it.Server == (v1.Key{}) {
			e.object = statedObject{it.Object, s}
			for _, c := range s.Conditions { // what else it says changes with each apply of the set
				text = append(text, c.Type+c.Status+c.Reason...)
			}
		}
		now[key] = true
		was, known := last[key]
		switch {
		case !known:
			events = append(events, e)
		case !bytes.Equal(was.text, text):
			e.kind = eventModified
			events = append(events, e)
		default:
			continue
		}
		last[key] = shownItem{e, text}
	}
	for key, was := range last {
		if !now[key] {
			was.kind = eventDeleted
			events = append(events, was.listEvent)
			delete(last, key)
		}
	}
	if first && o.watchOnly {
		return nil
	}
	if first && len(events) == 0 {
		return o.print(format, &action.Listed{})
	}
	return o.printEvents(format, events)
}

// What happened to an object, as Kubernetes says it.
const (
	eventAdded    = "ADDED"
	eventModified = "MODIFIED"
	eventDeleted  = "DELETED"
)

// listEvent is a change that a watch prints.
type listEvent struct {
	kind   string
	item   registry.Item
	object v1.Object // of the item, with its status where that is shown
}

// printEvents prints changes one by one, those of one kind that follow each other in one table.
func (o *listOptions) printEvents(format string, events []listEvent) error {
	if format != "table" && format != "wide" {
		for i, e := range events {
			if format == "yaml" && (i > 0 || o.headed[format]) {
				fmt.Fprintln(o.out, "---")
			}
			if err := o.printEvent(format, e); err != nil {
				return err
			}
			o.headed[format] = true
		}
		return nil
	}
	defer func() { o.event = "" }()
	for len(events) > 0 {
		o.event = events[0].kind
		n := slices.IndexFunc(events, func(e listEvent) bool { return e.kind != o.event })
		if n < 0 {
			n = len(events)
		}
		items := make([]registry.Item, n)
		for i, e := range events[:n] {
			items[i] = e.item
		}
		if err := o.print(format, &action.Listed{Items: items, Total: n, Servers: o.states}); err != nil {
			return err
		}
		events = events[n:]
	}
	return nil
}

// printEvent prints an object, within its event when that was asked for.
func (o *listOptions) printEvent(format string, e listEvent) error {
	columns := strings.HasPrefix(format, columnsFormat)
	switch {
	case !o.events && columns:
		return printColumns(o.app, format, []v1.Object{e.object}, o.headless || o.headed[format])
	case !o.events, format == "name":
		return o.printObjects(format, []v1.Object{e.object}, true, false)
	}
	v := struct {
		Type   string    `json:"type"`
		Object v1.Object `json:"object"`
	}{e.kind, e.object}
	switch {
	case columns:
		return printColumns(o.app, format, []any{v}, o.headless || o.headed[format])
	case format == "json":
		return printJSON(o.out, v)
	case format == "yaml":
		return printYAML(o.out, v)
	}
	return o.printTemplate(format, v)
}
