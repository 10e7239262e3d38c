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

// runStates keeps runs that wait in the store, with the flags that chose their model.
type runStates struct {
	*Runs
	// older is the folder beside the store in which toolctl kept runs before the store did.
	older agent.Folder
	own   ModelChoice
	// namespace is that of the prompts whose runs are found; empty for all.
	namespace string

	// Set by Take.
	flags   *ModelChoice
	asked   int  // how often the model was asked before
	inOlder bool // it was in the folder
	prompt  string
}

// states is where runs wait in a store; nil when there is none, or one that ends with the process.
func (c *Config) states(s store.Store, own ModelChoice) *runStates {
	dir := c.StoreFolder()
	if s == nil || dir == "" {
		return nil
	}
	return &runStates{Runs: NewRuns(s), older: agent.Folder(filepath.Join(dir, "runs")), own: own, namespace: c.Namespace}
}

// keptRun is a run that waits, as it is kept.
type keptRun struct {
	Flags ModelChoice     `json:"flags"`
	State json.RawMessage `json:"state"`
}

// resultOf is the run that a state is of; a zero one of a state that cannot be read, which the
// run says itself.
func resultOf(state []byte) (res agent.Result) {
	var kept struct {
		Result agent.Result `json:"result"`
	}
	if json.Unmarshal(state, &kept) == nil {
		res = kept.Result
	}
	return res
}

// Save keeps a run with its flags.
func (s *runStates) Save(ctx context.Context, id string, state []byte) error {
	raw, err := json.Marshal(keptRun{*cmp.Or(s.flags, &s.own), state})
	if err != nil {
		return err
	}
	name := s.prompt // of a state that cannot be read, too
	if res := resultOf(state); res.Prompt != "" {
		name = res.Namespace + "/" + res.Prompt
	}
	err = s.Runs.Save(ctx, store.Run{ID: id, Prompt: name, State: raw})
	if err == nil && s.inOlder {
		err = s.older.Drop(ctx, id)
	}
	return err
}

// Take returns a run and remembers its flags.
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
		return nil, errors.Join(fmt.Errorf("run %s: what was kept of it cannot be read: %w", id, err), giveBack())
	}
	res := resultOf(kept.State)
	s.flags, s.asked = &kept.Flags, res.Requests()
	return kept.State, nil
}

// take takes a run of the store, or else of the folder.
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

// has reports whether a run is of the namespace. What an earlier toolctl kept does not say of which it is.
func (s *runStates) has(r store.Run) bool {
	return s.namespace == "" || r.Prompt == "" || strings.HasPrefix(r.Prompt, s.namespace+"/")
}

// Drop deletes a run that was taken.
func (s *runStates) Drop(ctx context.Context, id string) error {
	if s.inOlder {
		return s.older.Drop(ctx, id)
	}
	return s.Runs.Drop(ctx, id)
}

// list returns the runs that wait.
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

// ListRuns lists the runs that wait, the newest last.
type ListRuns struct{ *Config }

// Run reads the store.
func (l *ListRuns) Run(ctx context.Context) (all []store.Run, err error) {
	err = l.withRuns(ctx, func(s *runStates) (err error) {
		all, err = s.list(ctx)
		return err
	})
	return all, err
}

// DeleteRuns deletes runs that wait.
type DeleteRuns struct {
	*Config
	IDs []string
}

// Run deletes one run after the other, and returns those that are deleted.
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

// withRuns opens the store for verbs that look after its runs.
func (c *Config) withRuns(ctx context.Context, do func(*runStates) error) error {
	return c.withKept(ctx, aboutStore, func(s store.Store) error {
		states := c.states(s, ModelChoice{})
		if states == nil {
			return usagef("a store that ends with the process keeps no runs: name another with --store")
		}
		return errors.Join(do(states), states.Close())
	})
}
