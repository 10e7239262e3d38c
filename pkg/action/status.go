package action

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/rollout"
	"toolctl.dev/toolctl/pkg/store"
)

// Status returns the status of items by their keys; states are the answers of the servers that were queried. An
// item that the store no longer has is left out.
func (w *Workspace) Status(ctx context.Context, items []registry.Item, states []mcp.ServerState) (map[v1.Key]v1.Status, error) {
	st := w.Kept()
	observer, err := NewObserver(ctx, st, w.LockFile)
	if err != nil {
		return nil, err
	}
	records, err := recordsOf(ctx, st, items)
	if err != nil {
		return nil, err
	}
	all := make(map[v1.Key]v1.Status, len(items))
	for _, it := range items {
		key := it.Object.Head().Key()
		rec := records[key]
		if rec == nil && st != nil && it.Server == (v1.Key{}) {
			continue // the object was deleted in the meantime
		}
		all[key] = observer.Status(it, rec, stateOf(states, key))
	}
	Turned(ctx, st, all, records)
	return all, nil
}

// stateOf returns the answer of a server; nil if it was not queried.
func stateOf(states []mcp.ServerState, key v1.Key) *mcp.ServerState {
	for i := range states {
		if states[i].Key == key {
			return &states[i]
		}
	}
	return nil
}

// recordsOf reads the objects of items from the store; without a store, the result is empty.
func recordsOf(ctx context.Context, s store.Store, items []registry.Item) (map[v1.Key]*store.Record, error) {
	records := make(map[v1.Key]*store.Record, len(items))
	if s == nil {
		return records, nil
	}
	const few = 20 // up to this many objects, reading them one by one is faster
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

// Look returns the present status of objects, and the states of the servers that it queries: the servers among the
// objects, and the servers of tools among the objects. The error is a [v1.NotFoundError] if an object does not exist.
func (w *Workspace) Look(ctx context.Context, keys []v1.Key) (all map[v1.Key]v1.Status, states []mcp.ServerState, err error) {
	w.Registry.Check(ctx)
	var servers []v1.Key
	for _, k := range keys {
		if k.Kind == v1.KindMCPServer && !slices.Contains(servers, k) {
			servers = append(servers, k)
		}
	}
	if len(servers) > 0 {
		states = w.Discover(ctx, servers...)
	}
	items := make([]registry.Item, len(keys))
	for i, k := range keys {
		name := k.Namespace + "/" + k.Name
		if items[i], err = w.Registry.Get(k.Kind, k.Namespace, name); err != nil {
			return nil, states, err
		}
		if t := items[i].Tool(); t != nil && t.Mode() == v1.ModeMCP {
			_, _ = w.Prepare(ctx, v1.Call{Tool: name}) // the item shows whether the server has the tool
			if items[i], err = w.Registry.Get(k.Kind, k.Namespace, name); err != nil {
				return nil, states, err
			}
		}
	}
	all, err = w.Status(ctx, items, states)
	return all, states, err
}

// SetState is the state of a set in the store.
type SetState struct {
	Set      string    `json:"set"`
	Revision int64     `json:"revision"`
	Commit   string    `json:"commit,omitempty"`
	Time     time.Time `json:"time"`
	Objects  int       `json:"objects"`
	Ready    int       `json:"ready"`
	// Changed and Gone are the objects that were changed or removed outside the set.
	Changed []string `json:"changed"`
	Gone    []string `json:"gone"`
	// NotReady has the reason for each object that is not ready.
	NotReady map[string]string `json:"not_ready"`
}

// SetStates compares sets of the store with their newest revisions, and queries their servers. If there is an error,
// it returns the sets before it.
func (w *Workspace) SetStates(ctx context.Context, sets []store.Revision) (all []SetState, err error) {
	for _, r := range sets {
		newest, err := w.Store.Revisions(ctx, store.RevisionQuery{Set: r.Set, Newest: true})
		if err != nil {
			return all, err
		}
		state, err := rollout.Inspect(ctx, w.Store, newest[0])
		if err != nil {
			return all, err
		}
		s := SetState{Set: r.Set, Revision: newest[0].Number, Commit: newest[0].Commit, Time: newest[0].Time, Objects: len(state.Members), Changed: []string{}, Gone: []string{}, NotReady: map[string]string{}}
		var keys []v1.Key
		for i := range state.Members {
			keys = append(keys, state.Members[i].Key())
		}
		for _, k := range state.Changed {
			s.Changed = append(s.Changed, rollout.ObjectName(k))
		}
		for _, k := range state.Gone {
			s.Gone = append(s.Gone, rollout.ObjectName(k))
		}
		seen, states, err := w.Look(ctx, keys)
		for _, k := range keys {
			status := seen[k]
			c := status.Condition(v1.ConditionReady)
			if c.Status == v1.ConditionTrue {
				s.Ready++
				continue
			}
			why := cmp.Or(c.Message, "it was not checked in time")
			if state := stateOf(states, k); state != nil && !state.Ready {
				why = state.Why()
			}
			s.NotReady[rollout.ObjectName(k)] = why
		}
		if all = append(all, s); err != nil {
			return all, err
		}
	}
	return all, nil
}

// Drifted reports whether objects were changed or removed outside the set.
func (s *SetState) Drifted() bool { return len(s.Changed)+len(s.Gone) > 0 }

// Find queries the MCP servers that may offer the tool of a call, and passes a tool that they offer to Found of
// the [Config].
func (w *Workspace) Find(ctx context.Context, call v1.Call) (v1.Call, error) {
	_, unknown := w.Registry.Lookup(call.Namespace, call.Tool)
	call, err := w.Prepare(ctx, call)
	if found := w.config.Found; unknown != nil && found != nil {
		if it, err := w.Registry.Lookup(call.Namespace, call.Tool); err == nil {
			found(it.Tool())
		}
	}
	return call, err
}
