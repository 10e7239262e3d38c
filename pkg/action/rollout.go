package action

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/plan"
	"toolctl.dev/toolctl/pkg/rollout"
	"toolctl.dev/toolctl/pkg/store"
)

// RolloutHistory lists the revisions of a set, or of all sets.
type RolloutHistory struct {
	*Config
	// Set is the name of a set or a path. Default: the set of Files, or all sets.
	Set string
}

// Run returns the revisions by set, oldest first.
func (h *RolloutHistory) Run(ctx context.Context) ([]store.Revision, error) {
	all := []store.Revision{}
	err := h.withStore(ctx, false, func(s store.Store) error {
		sets, err := h.sets(ctx, s, h.Set)
		for _, newest := range sets {
			if err == nil {
				var revisions []store.Revision
				revisions, err = s.Revisions(ctx, store.RevisionQuery{Set: newest.Set})
				all = append(all, revisions...)
			}
		}
		return err
	})
	return all, err
}

// Show returns one revision of the set with its manifests.
func (h *RolloutHistory) Show(ctx context.Context, number int64) (r store.Revision, objects []v1.Object, err error) {
	objects = []v1.Object{}
	err = h.withStore(ctx, false, func(s store.Store) error {
		newest, err := h.oneSet(ctx, s, h.Set)
		if err != nil {
			return err
		}
		records, err := s.RevisionObjects(ctx, newest.Set, number)
		if err != nil {
			return err
		}
		found, err := s.Revisions(ctx, store.RevisionQuery{Set: newest.Set, Number: number})
		if err != nil || len(found) == 0 { // it was deleted between the two reads
			return cmp.Or[error](err, store.NoRevision(newest.Set, number, nil))
		}
		r = found[0]
		for _, rec := range records {
			objects = append(objects, rec.Object)
		}
		return nil
	})
	return r, objects, err
}

// sets returns the newest revision of the set with this name or path, or of the set of the files, or of all
// sets.
func (c *Config) sets(ctx context.Context, s store.Store, set string) ([]store.Revision, error) {
	newest, err := s.Revisions(ctx, store.RevisionQuery{Newest: true})
	if err != nil {
		return nil, err
	}
	var names []string
	files := c.Files
	switch {
	case set != "" && len(c.Files) > 0:
		return nil, usagef("-f and %q both name a set: leave out one of them", set)
	case set != "":
		names, files = append(names, strings.ReplaceAll(set, ", ", "\n"), set), []string{set}
	case len(c.Files) == 0:
		if len(newest) == 0 {
			return nil, &v1.NotFoundError{Kind: "Set", Name: "any"}
		}
		return newest, nil
	}
	path, err := plan.SetName(files)
	if err != nil {
		return nil, err
	}
	names = append(names, path)
	var known []string
	for _, name := range names {
		for _, r := range newest {
			if r.Set == name {
				return []store.Revision{r}, nil
			}
			known = append(known, rollout.Name(r.Set))
		}
	}
	missing := &v1.NotFoundError{Kind: "Set", Name: rollout.Name(names[0])}
	if near := v1.Nearest(missing.Name, known); near != "" {
		missing.Candidates = []string{near}
	}
	return nil, missing
}

// oneSet returns the newest revision of the only matching set.
func (c *Config) oneSet(ctx context.Context, s store.Store, set string) (store.Revision, error) {
	sets, err := c.sets(ctx, s, set)
	if err != nil {
		return store.Revision{}, err
	}
	if len(sets) > 1 {
		var names []string
		for _, r := range sets {
			names = append(names, fmt.Sprintf("%q", rollout.Name(r.Set)))
		}
		return store.Revision{}, usagef("the store has %s, %s: name one", clip.Count(len(sets), "set"), strings.Join(names, ", "))
	}
	return sets[0], nil
}

// RolloutStatus waits until every object of a set is ready.
type RolloutStatus struct {
	*Config
	// Set is as for [RolloutHistory].
	Set string
	// Timeout is the maximum time to wait.
	Timeout time.Duration
	// Once checks the sets once without waiting.
	Once bool
	// Progress is called with the states of the sets during the wait.
	Progress func([]SetState)
}

// Run returns the states of the sets at the end, whether they are ready or not.
func (r *RolloutStatus) Run(ctx context.Context) (all []SetState, err error) {
	var sets []store.Revision
	if err := r.withStore(ctx, false, func(s store.Store) (err error) {
		sets, err = r.sets(ctx, s, r.Set)
		return err
	}); err != nil {
		return nil, err
	}
	c := *r.Config
	c.Files = nil // they only named the set, whose objects are in the store
	within, stop := context.WithTimeout(ctx, r.Timeout)
	defer stop()
	for {
		seen, err := c.setStates(within, sets)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err == nil:
			all = seen
		case within.Err() == nil:
			return nil, err
		case all == nil:
			return nil, &NotReadyError{[]string{fmt.Sprintf("%s could not be checked in %s", clip.Count(len(sets), "set"), clip.Duration(r.Timeout))}}
		}
		waiting := slices.ContainsFunc(all, func(s SetState) bool { return s.Ready < s.Objects && !s.Drifted() })
		if waiting && r.Progress != nil {
			r.Progress(all)
		}
		if !waiting || r.Once || within.Err() != nil || err != nil {
			return all, nil
		}
		const askAgain = 500 * time.Millisecond
		pause(within, askAgain)
	}
}

func (c *Config) setStates(ctx context.Context, sets []store.Revision) (_ []SetState, err error) {
	w, err := c.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	return w.SetStates(ctx, sets)
}

// RolloutUndo applies the manifests of an earlier revision of a set again.
type RolloutUndo struct {
	*Config
	// Set is as for [RolloutHistory], but selects one set.
	Set string
	// Number is the revision. Default: the newest with other manifests.
	Number int64
	// TakeOver moves back objects that now belong to other sets; Force also undoes changes made outside the set.
	TakeOver, Force bool
	// History is the number of earlier revisions of the set to keep, from 0.
	History int
	DryRun  bool
	// Confirm is called before anything changes; its error stops the undo.
	Confirm func(*rollout.Undo) error
}

// Undone is the result of a [RolloutUndo].
type Undone struct {
	Set string
	// To is the revision. Needed is false if the set already has its manifests.
	To      int64
	Needed  bool
	Changes []Change
}

// Run makes the undo. If that is not possible, nothing changes, and the error is one of [rollout.NewUndo], a
// [store.ConflictError] or a [v1.ValidationError].
func (r *RolloutUndo) Run(ctx context.Context) (done *Undone, err error) {
	switch {
	case r.Number < 0:
		return nil, usagef("--to-revision %d: expected a number from 1, or 0 for the newest with other manifests", r.Number)
	case r.History < 0:
		return nil, usagef("--revision-history-limit %d: expected 0 or more", r.History)
	}
	err = r.withStore(ctx, false, func(s store.Store) error {
		newest, err := r.oneSet(ctx, s, r.Set)
		if err != nil {
			return err
		}
		u, err := rollout.NewUndo(ctx, s, newest.Set, r.Number, rollout.Options{By: r.By, TakeOver: r.TakeOver, Force: r.Force, History: historyLimit(r.History)})
		if err != nil {
			return err
		}
		done = &Undone{Set: newest.Set, To: u.To.Number, Needed: u.Needed()}
		if !done.Needed {
			return nil
		}
		if err := checkUndo(ctx, s, u, gateway.Options{Env: r.Gateway.Env}); err != nil {
			return err
		}
		if !r.DryRun && r.Confirm != nil {
			if err := r.Confirm(u); err != nil {
				return err
			}
		}
		changes := u.Changes
		if !r.DryRun {
			if changes, err = u.Apply(ctx, s); err != nil {
				return err
			}
		}
		done.Changes = Changes(changes)
		return nil
	})
	return done, err
}
