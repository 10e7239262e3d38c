package action

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/lock"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/store"
)

// Observer determines the status of objects from the sets of a store and from the lock.
type Observer struct {
	newest    map[string]store.Revision // newest revision of each set
	overrides []store.Override
	lock      *lock.File // nil without a lock
}

// NewObserver reads the newest revision of each set, the overrides, and the lock if it exists; named is as in
// [gateway.Options.LockFile]. Without a store, no object belongs to a set.
func NewObserver(ctx context.Context, st store.Store, named string) (*Observer, error) {
	o := &Observer{newest: map[string]store.Revision{}}
	if st != nil {
		all, err := st.Revisions(ctx, store.RevisionQuery{Newest: true})
		if err != nil {
			return nil, err
		}
		for _, r := range all {
			o.newest[r.Set] = r
		}
		if o.overrides, err = st.Overrides(ctx); err != nil {
			return nil, err
		}
	}
	path, err := lock.Find(named)
	if err != nil {
		return nil, err
	}
	switch f, err := lock.Read(path); {
	case err == nil:
		o.lock = &f
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	return o, nil
}

// Status returns the status of an object. rec is its record in the store, nil for an object of files; state is
// the answer of its server, nil if the server was not queried.
func (o *Observer) Status(it registry.Item, rec *store.Record, state *mcp.ServerState) v1.Status {
	h := it.Object.Head()
	s := v1.Status{}
	if !h.Source.IsZero() {
		s.Source = h.Source.String()
	}
	if rec == nil {
		rec = &store.Record{Object: it.Object}
	}
	s.Generation, s.ResourceVersion, s.Set = rec.Generation, rec.ResourceVersion, rec.Set
	if newest, ok := o.newest[rec.Set]; ok && rec.Set != "" {
		s.Revision, s.Commit = newest.Of(h.Key())
	}
	for _, c := range []v1.Condition{ready(it, state), degraded(it, state), o.drifted(rec, state)} {
		c.ObservedGeneration = rec.Generation
		if c.LastTransitionTime.IsZero() {
			c.LastTransitionTime = rec.Created
		}
		s.Conditions = append(s.Conditions, c)
	}
	return s
}

// Turned fills in the times of the last transitions of conditions, which the store remembers; records are the
// objects. A condition that is Unknown keeps the creation time. Without a store, and with a store that cannot
// be written, the time is now.
func Turned(ctx context.Context, st store.Store, all map[v1.Key]v1.Status, records map[v1.Key]*store.Record) {
	if st == nil {
		now := time.Now().UTC()
		for _, s := range all {
			for i := range s.Conditions {
				s.Conditions[i].LastTransitionTime = now
			}
		}
		return
	}
	var seen []store.Seen
	var of []*v1.Condition
	for key, s := range all {
		rec := records[key]
		if rec == nil {
			continue
		}
		for i := range s.Conditions {
			c := &s.Conditions[i]
			if c.Status == v1.ConditionUnknown {
				continue
			}
			seen, of = append(seen, begins(rec, c)), append(of, c)
		}
	}
	since, err := st.Turned(ctx, seen)
	if err != nil {
		since, _ = store.TurnsOf(nil, seen, time.Now())
	}
	for i, c := range of {
		c.LastTransitionTime = since[i]
	}
}

// begins returns the status that a condition begins with: applied objects were checked and are ready, and
// servers have not been queried.
func begins(rec *store.Record, c *v1.Condition) store.Seen {
	s := store.Seen{UID: rec.UID, Type: c.Type, Status: c.Status}
	first := v1.ConditionFalse
	if c.Type == v1.ConditionReady {
		first = v1.ConditionTrue
	}
	switch {
	case c.Reason == reasonChangedSince:
		s.Since = rec.Updated
	case c.Reason == reasonOverridden:
		s.Since = c.LastTransitionTime
	case c.Status == first && (c.Type == v1.ConditionDrifted || rec.Key().Kind != v1.KindMCPServer):
		s.First, s.Since = true, rec.Created
	}
	return s
}

// Reasons of the condition Drifted for which the time of the change is known.
const (
	reasonChangedSince = "ChangedSince" // the object was changed outside its set
	reasonOverridden   = "Overridden"   // an override in the store replaces its text
)

func ready(it registry.Item, state *mcp.ServerState) v1.Condition {
	c := v1.Condition{Type: v1.ConditionReady, Status: v1.ConditionTrue, Reason: "Ready", Message: "ready to use"}
	switch _, isServer := it.Object.(*v1.MCPServer); {
	case !it.Ready:
		c.Status, c.Reason, c.Message = v1.ConditionFalse, "NotReady", cmp.Or(it.Reason(), "cannot be used")
		if isServer && state != nil && !state.Ready {
			c.Reason, c.Message = "ServerNotReady", cmp.Or(state.Reason, c.Message)
		}
	case isServer && state == nil:
		c.Status, c.Reason, c.Message = v1.ConditionUnknown, "NotAsked", "the server was not queried"
	case isServer && !state.Ready:
		c.Status, c.Reason, c.Message = v1.ConditionFalse, "ServerNotReady", state.Reason
	case isServer:
		c.Reason, c.Message = "ServerReady", fmt.Sprintf("the server answered; tools: %d", len(state.Tools))
	}
	return c
}

// degraded is true for objects that cannot be used fully.
func degraded(it registry.Item, state *mcp.ServerState) v1.Condition {
	c := ready(it, state)
	c.Type = v1.ConditionDegraded
	if c.Status != v1.ConditionTrue {
		if c.Status == v1.ConditionFalse {
			c.Status = v1.ConditionTrue
		}
		return c
	}
	c.Status, c.Reason, c.Message = v1.ConditionFalse, "AsExpected", "fully usable"
	switch {
	case it.Blocked != nil:
		c.Status, c.Reason, c.Message = v1.ConditionTrue, "Blocked", "all calls are refused: "+it.Blocked.Error()
	case state != nil:
		var broken []string
		for _, t := range state.Tools {
			if t.Problem != "" {
				broken = append(broken, t.Tool.Metadata.Name+": "+t.Problem)
			}
		}
		if len(broken) > 0 {
			c.Status, c.Reason, c.Message = v1.ConditionTrue, "SomeToolsNotReady", clip.Some(broken)
		} else if len(state.Warnings) > 0 {
			c.Status, c.Reason, c.Message = v1.ConditionTrue, "Warnings", clip.Some(state.Warnings)
		}
	}
	return c
}

// drifted is true for objects that differ from what their set applied, for tools whose description an override
// replaces, and for servers whose tools differ from the lock.
func (o *Observer) drifted(rec *store.Record, state *mcp.ServerState) v1.Condition {
	c := v1.Condition{Type: v1.ConditionDrifted, Status: v1.ConditionFalse, Reason: "NoSet", Message: "belongs to no set"}
	if newest, ok := o.newest[rec.Set]; ok && rec.Set != "" {
		c.Reason, c.Message = "AsApplied", fmt.Sprintf("matches revision %d of its set", newest.Number)
		if newest.Drifted(rec) {
			c.Status, c.Reason, c.Message = v1.ConditionTrue, reasonChangedSince, fmt.Sprintf("changed outside its set after revision %d", newest.Number)
			return c
		}
	}
	var texts []string
	for _, by := range o.overrides {
		if by.Drifts(rec.Object) {
			texts = append(texts, by.Drift())
			if c.LastTransitionTime.IsZero() || by.Time.Before(c.LastTransitionTime) {
				c.LastTransitionTime = by.Time
			}
		}
	}
	if len(texts) > 0 {
		c.Status, c.Reason, c.Message = v1.ConditionTrue, reasonOverridden, clip.Some(texts)
		return c
	}
	if o.lock == nil || state == nil || !state.Ready {
		return c
	}
	old := o.lock.Server(state.Key)
	if old == nil {
		return c
	}
	now, _ := LockServers([]mcp.ServerState{*state})
	for _, d := range lock.Diff(lock.File{Servers: []lock.Server{*old}}, lock.File{Servers: now}) {
		texts = append(texts, d.String())
	}
	if len(texts) > 0 {
		c.Status, c.Reason, c.Message = v1.ConditionTrue, "DiffersFromLock", clip.Some(texts)
	}
	return c
}
