package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/inspect"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/rollout"
	"toolctl.dev/toolctl/pkg/store"
)

// statedObject is an object that is printed with its status.
type statedObject struct {
	v1.Object
	status v1.Status
}

// MarshalJSON adds the status behind the fields of the manifest.
func (o statedObject) MarshalJSON() ([]byte, error) {
	text, err := jsontext.Marshal(o.Object)
	if err != nil {
		return nil, err
	}
	status, err := jsontext.Marshal(o.status)
	if err != nil {
		return nil, err
	}
	text = append(text[:len(text)-1], `,"status":`...)
	return append(append(text, status...), '}'), nil
}

// showsStatus reports whether a format of list shows the status of objects. The manifests of
// files are shown as they are written.
func showsStatus(format string, files bool) bool {
	name, template, _ := strings.Cut(format, "=")
	return !files && (name == "json" || name == "yaml") || strings.Contains(template, "status")
}

// statuses says how items stand; states are those of the servers that were asked.
func (a *app) statuses(ctx context.Context, w *workspace, items []registry.Item, states []mcp.ServerState) (map[v1.Key]v1.Status, error) {
	kept := w.store
	if w.files {
		kept = nil // what it holds is not what the items are
	}
	observer, err := gateway.NewObserver(ctx, kept, a.lockFile)
	if err != nil {
		return nil, err
	}
	records, err := recordsOf(ctx, kept, items)
	if err != nil {
		return nil, err
	}
	all := make(map[v1.Key]v1.Status, len(items))
	for _, it := range items {
		key := it.Object.Head().Key()
		rec := records[key]
		if rec == nil && kept != nil && it.Server == (v1.Key{}) {
			continue // it was removed just now
		}
		all[key] = observer.Status(it, rec, stateOf(states, key))
	}
	gateway.Turned(ctx, kept, all, records)
	return all, nil
}

// describeStatus shows how an object of the store stands.
func (a *app) describeStatus(ctx context.Context, w *workspace, it registry.Item, states []mcp.ServerState) error {
	if w.files || it.Server != (v1.Key{}) {
		return nil
	}
	all, err := a.statuses(ctx, w, []registry.Item{it}, states)
	if err != nil {
		return err
	}
	s, ok := all[it.Object.Head().Key()]
	if !ok {
		return nil
	}
	line := func(key, value string) { fmt.Fprintf(a.out, "%-13s%s\n", key+":", oneLine(value)) }
	if s.Set != "" {
		line("Set", rollout.Name(s.Set))
		line("Revision", strconv.FormatInt(s.Revision, 10))
		line("Commit", cmp.Or(s.Commit, "-"))
	}
	fmt.Fprintln(a.out, "Conditions:")
	t := newTable(a.out, "  TYPE", "STATUS", "SINCE", "REASON", "MESSAGE")
	for _, c := range s.Conditions {
		t.row("  "+c.Type, c.Status, clock(c.LastTransitionTime), c.Reason, shorten(inspect.Show(c.Message), 160))
	}
	return t.Flush()
}

// stateOf returns what a server answered; nil when it was not asked.
func stateOf(states []mcp.ServerState, key v1.Key) *mcp.ServerState {
	for i := range states {
		if states[i].Key == key {
			return &states[i]
		}
	}
	return nil
}

// recordsOf reads the objects of items from the store; there is nothing to read without one.
func recordsOf(ctx context.Context, s store.Store, items []registry.Item) (map[v1.Key]*store.Record, error) {
	records := make(map[v1.Key]*store.Record, len(items))
	if s == nil {
		return records, nil
	}
	const few = 20 // objects that are faster read one by one
	if len(items) > few {
		list, err := s.List(ctx, store.ListOptions{})
		for i := range list.Records {
			records[list.Records[i].Key()] = &list.Records[i]
		}
		return records, err
	}
	for _, it := range items {
		rec, err := s.Get(ctx, it.Object.Head().Key())
		var missing *v1.NotFoundError
		switch {
		case errors.As(err, &missing):
		case err != nil:
			return nil, err
		default:
			records[rec.Key()] = &rec
		}
	}
	return records, nil
}
