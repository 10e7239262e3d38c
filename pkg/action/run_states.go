package action

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/store"
)

// runStates keeps pending runs in the store, with the flags that selected their model.
type runStates struct {
	*Runs
	// older is the folder beside the store in which earlier versions of toolctl kept runs.
	older agent.Folder
	own   ModelChoice
	// namespace limits the runs to prompts of this namespace; empty means all.
	namespace string

	// Take sets these fields.
	flags   *ModelChoice
	asked   int  // number of earlier requests to the model
	inOlder bool // the run is in the older folder
	prompt  string
}

// states returns the pending runs of a store; nil without a store, or with a store in memory.
func (c *Config) states(s store.Store, own ModelChoice) *runStates {
	dir := c.StoreFolder()
	if s == nil || dir == "" {
		return nil
	}
	return &runStates{Runs: NewRuns(s), older: agent.Folder(filepath.Join(dir, "runs")), own: own, namespace: c.Namespace}
}

// keptRun is the stored form of a pending run.
type keptRun struct {
	Flags ModelChoice     `json:"flags"`
	State json.RawMessage `json:"state"`
}

// resultOf returns the result in a state, or a zero result for an unreadable state, which resuming the run
// reports.
func resultOf(state []byte) (res agent.Result) {
	var kept struct {
		Result agent.Result `json:"result"`
	}
	if json.Unmarshal(state, &kept) == nil {
		res = kept.Result
	}
	return res
}

// Save stores a run with its flags.
func (s *runStates) Save(ctx context.Context, id string, state []byte) error {
	raw, err := json.Marshal(keptRun{*cmp.Or(s.flags, &s.own), state})
	if err != nil {
		return err
	}
	name := s.prompt // also used if the state cannot be read
	if res := resultOf(state); res.Prompt != "" {
		name = res.Namespace + "/" + res.Prompt
	}
	err = s.Runs.Save(ctx, store.Run{ID: id, Prompt: name, State: raw})
	if err == nil && s.inOlder {
		err = s.older.Drop(ctx, id)
	}
	return err
}

// Take returns a run and remembers its flags for Save.
func (s *runStates) Take(ctx context.Context, id string) ([]byte, error) {
	run, err := s.take(ctx, id)
	if err != nil {
		return nil, err
	}
	var kept keptRun
	if err := json.Unmarshal(run.State, &kept); err != nil {
		giveBack := func() error { return s.Runs.Save(ctx, run) }
		if s.inOlder {
			giveBack = func() error { return s.older.Save(ctx, id, run.State) }
		}
		return nil, errors.Join(fmt.Errorf("run %s: its stored state cannot be read: %w", id, err), giveBack())
	}
	res := resultOf(kept.State)
	s.flags, s.asked = &kept.Flags, res.Requests()
	return kept.State, nil
}

// take returns a run of the store, or of the older folder.
func (s *runStates) take(ctx context.Context, id string) (run store.Run, err error) {
	s.inOlder = false
	if err := s.mayTake(ctx, id); err != nil {
		return store.Run{}, err
	}
	defer func() { s.prompt = run.Prompt }()
	run, err = s.Runs.Take(ctx, id)
	if missing := (*v1.NotFoundError)(nil); errors.As(err, &missing) {
		raw, olderErr := s.older.Take(ctx, id)
		if s.inOlder = olderErr == nil; s.inOlder {
			return store.Run{ID: id, State: raw}, nil
		}
		if !errors.As(olderErr, new(*v1.NotFoundError)) {
			err = olderErr
		}
	}
	return run, err
}

// mayTake refuses a run of another namespace.
func (s *runStates) mayTake(ctx context.Context, id string) error {
	all, err := s.store.ListRuns(ctx)
	if err != nil {
		return err
	}
	for _, r := range all {
		if r.ID == id && !s.has(r) {
			return &v1.NotFoundError{Kind: "Run", Name: id}
		}
	}
	return nil
}

// has reports whether a run belongs to the namespace. Runs of earlier versions have no namespace.
func (s *runStates) has(r store.Run) bool {
	return s.namespace == "" || r.Prompt == "" || strings.HasPrefix(r.Prompt, s.namespace+"/")
}

// Drop deletes a run after Take.
func (s *runStates) Drop(ctx context.Context, id string) error {
	if s.inOlder {
		return s.older.Drop(ctx, id)
	}
	return s.Runs.Drop(ctx, id)
}

// list returns the pending runs.
func (s *runStates) list(ctx context.Context) ([]store.Run, error) {
	ids, err := s.older.List()
	if err != nil {
		return nil, err
	}
	all := []store.Run{}
	for _, id := range ids {
		all = append(all, store.Run{ID: id})
	}
	kept, err := s.store.ListRuns(ctx)
	return append(all, slices.DeleteFunc(kept, func(r store.Run) bool { return !s.has(r) })...), err
}

// ListRuns lists the pending runs, newest last.
type ListRuns struct{ *Config }

// Run reads the store.
func (l *ListRuns) Run(ctx context.Context) (all []store.Run, err error) {
	err = l.withRuns(ctx, func(s *runStates) (err error) {
		all, err = s.list(ctx)
		return err
	})
	return all, err
}

// DeleteRuns deletes pending runs.
type DeleteRuns struct {
	*Config
	IDs []string
}

// Run deletes the runs one by one, and returns the deleted ones.
func (d *DeleteRuns) Run(ctx context.Context) (deleted []string, err error) {
	err = d.withRuns(ctx, func(s *runStates) error {
		for _, id := range d.IDs {
			if _, err := s.take(ctx, id); err != nil {
				return err
			}
			if err := s.Drop(ctx, id); err != nil {
				return err
			}
			deleted = append(deleted, id)
		}
		return nil
	})
	return deleted, err
}

// withRuns opens the store for verbs about its runs.
func (c *Config) withRuns(ctx context.Context, do func(*runStates) error) error {
	return c.withKept(ctx, aboutStore, func(s store.Store) error {
		states := c.states(s, ModelChoice{})
		if states == nil {
			return usagef("a store that ends with the process keeps no runs: name another with --store")
		}
		return errors.Join(do(states), states.Close())
	})
}
