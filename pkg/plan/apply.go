package plan

import (
	"context"
	"errors"
	"fmt"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

// StaleError reports that a plan was not applied, because manifests or objects in it have changed.
type StaleError struct {
	// Conflicts has one sentence for each change.
	Conflicts []string
}

func (e *StaleError) Error() string {
	return "the plan is out of date, and nothing was applied:\n  " + strings.Join(e.Conflicts, "\n  ") + "\ncreate a new one with 'toolctl diff -o plan'"
}

// Others selects how the apply treats objects of other sets.
func (p *Plan) Others() store.Others {
	switch {
	case p.TakeOver:
		return store.TakeOthers
	case p.Named:
		return store.RefuseOthers
	}
	return store.LeaveOthers
}

// Apply makes exactly the changes of the plan. If a manifest or an object of the store has changed since the plan was
// made, nothing changes, and the error is a *[StaleError] that names each change. objects are the present manifests.
// Apply uses only By, Command and DryRun of the options.
func (p *Plan) Apply(ctx context.Context, st store.Store, objects []v1.Object, opts store.ApplyOptions) ([]store.Change, error) {
	given := make(map[v1.Key]v1.Object, len(objects))
	for _, o := range objects {
		given[o.Head().Key()] = o
	}
	stale := &StaleError{}
	note := func(key v1.Key, format string, args ...any) {
		stale.Conflicts = append(stale.Conflicts, key.String()+": "+fmt.Sprintf(format, args...))
	}
	var touched []v1.Object
	expect, prune := make(map[v1.Key]int64, len(p.Steps)), map[v1.Key]bool{}
	for _, s := range p.Steps {
		key := s.key()
		if err := p.checkStored(ctx, st, &s, note); err != nil {
			return nil, err
		}
		expect[key] = s.ResourceVersion
		o := given[key]
		if s.Action == store.Pruned {
			if prune[key] = true; o != nil {
				note(key, "the plan prunes it, but the files contain it again")
			}
			continue
		}
		if o == nil {
			note(key, "it is no longer in the files")
			continue
		}
		digest, err := Digest(o)
		if err != nil {
			return nil, err
		}
		if digest != s.Becomes {
			note(key, "its manifest at %s has changed since", o.Head().Source)
		}
		touched = append(touched, o)
	}
	if len(stale.Conflicts) > 0 {
		return nil, stale
	}
	opts.Set, opts.Others, opts.Expect = p.Set, p.Others(), expect
	opts.Prune = len(prune) > 0
	opts.Keep = func(r store.Record) bool { return !prune[r.Key()] }
	changes, err := st.Apply(ctx, touched, opts)
	if _, ok := errors.AsType[*store.ConflictError](err); ok { // the store has changed since the check
		for _, text := range strings.Split(err.Error(), "\n") {
			stale.Conflicts = append(stale.Conflicts, strings.TrimPrefix(text, "apply: "))
		}
		return nil, stale
	}
	return changes, err
}

// checkStored records how an object of the store differs from a step.
func (p *Plan) checkStored(ctx context.Context, st store.Store, s *Step, note func(v1.Key, string, ...any)) error {
	key := s.key()
	r, err := st.Get(ctx, key)
	var missing *v1.NotFoundError
	switch {
	case errors.As(err, &missing):
		if s.ResourceVersion != 0 {
			note(key, "the store no longer has it; the plan was made at resourceVersion %d", s.ResourceVersion)
		}
		return nil
	case err != nil:
		return err
	case s.ResourceVersion == 0:
		note(key, "the plan creates it, and the store has it at resourceVersion %d", r.ResourceVersion)
		return nil
	case r.ResourceVersion != s.ResourceVersion:
		note(key, "the store has it at resourceVersion %d; the plan was made at %d", r.ResourceVersion, s.ResourceVersion)
		return nil
	case r.Set != s.Set:
		note(key, "it belongs to a different set than when the plan was made")
		return nil
	}
	digest, err := Digest(r.Object)
	if err == nil && digest != s.Was {
		note(key, "the store has another object of this name: the plan was made for another store")
	}
	return err
}
