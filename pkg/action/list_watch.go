package action

import (
	"bytes"
	"context"
	"fmt"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
)

// The events of a watch, with the names from Kubernetes.
const (
	EventAdded    = "ADDED"
	EventModified = "MODIFIED"
	EventDeleted  = "DELETED"
)

// Watch calls changed with the existing objects, and then with those that are added, modified or deleted, until ctx
// ends. It passes errors to failed and continues.
func (l *List) Watch(ctx context.Context, changed func(items []ListedItem) error, failed func(error)) error {
	return l.within(ctx, func(w *Workspace) error {
		last := seenItems{}
		look := func(first bool) error {
			r, err := l.in(ctx, w)
			switch {
			case err != nil && (r != nil || len(last) == 0):
				return err
			case err != nil:
				r = &Listed{} // all listed objects were deleted
			}
			events, err := last.update(r.Items)
			if err != nil || len(events) == 0 && !first {
				return err
			}
			return changed(events)
		}
		if err := look(true); err != nil {
			return err
		}
		news, err := w.Source.Watch(ctx, failed)
		if err != nil {
			return fmt.Errorf("--watch: %w", err)
		}
		for range news {
			set, err := w.Source.Load(ctx)
			if err == nil {
				w.Replace(set)
				w.Registry.Check(ctx)
				err = look(false)
			}
			if err != nil && ctx.Err() == nil {
				failed(err)
			}
		}
		return nil
	})
}

// seenItems has the objects that a watch reported last, each with a text that differs if the object has changed.
type seenItems map[v1.Key]struct {
	ListedItem
	text []byte
}

// update returns the differences between seen and items, and replaces seen by items.
func (seen seenItems) update(items []ListedItem) (events []ListedItem, err error) {
	now := make(map[v1.Key]bool, len(items))
	for _, it := range items {
		text, err := manifest.MarshalJSON(it.Object)
		if err != nil {
			return nil, err
		}
		text = fmt.Append(text, it.Ready, it.Reason())
		if it.Status != nil {
			for _, c := range it.Status.Conditions { // the rest of the status changes with each apply of the set
				text = append(text, c.Type+c.Status+c.Reason...)
			}
		}
		key := it.Object.Head().Key()
		now[key] = true
		was, known := seen[key]
		if known && bytes.Equal(was.text, text) {
			continue
		}
		if it.Event = EventAdded; known {
			it.Event = EventModified
		}
		was.ListedItem, was.text = it, text
		seen[key], events = was, append(events, it)
	}
	for key, was := range seen {
		if !now[key] {
			was.Event = EventDeleted
			events = append(events, was.ListedItem)
			delete(seen, key)
		}
	}
	return events, nil
}
