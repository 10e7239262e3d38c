package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/rollout"
	"toolctl.dev/toolctl/pkg/store"
)

// rolloutState is how a set stands, as 'rollout status -o json' prints it.
type rolloutState struct {
	Set      string    `json:"set"`
	Revision int64     `json:"revision"`
	Commit   string    `json:"commit,omitempty"`
	Time     time.Time `json:"time"`
	Objects  int       `json:"objects"`
	Ready    int       `json:"ready"`
	// Changed and Gone are the objects that something else than the set changed and removed.
	Changed []string `json:"changed"`
	Gone    []string `json:"gone"`
	// NotReady says of each object that is not ready why.
	NotReady map[string]string `json:"not_ready"`
}

func newRolloutStatusCmd(a *app) *cobra.Command {
	var (
		watch   bool
		timeout time.Duration
	)
	cmd := &cobra.Command{
		Use:   "status [SET]",
		Short: "Wait until a set is rolled out",
		Long: `Wait until every object of a set is ready, of all sets when none is named; MCP servers are
asked. The exit code is 7 when time runs out first, or at once with --watch=false. It is 1
when an edit, a delete or another set has changed what the set applied: that is named.

Output formats (-o): text, json, yaml.`,
		Annotations: formats("text", "json", "yaml"),
		Example: `  toolctl rollout status payments --timeout 2m
  toolctl rollout status --watch=false -o json`,
		Args:              oneSet,
		ValidArgsFunction: a.completeSet,
		RunE: func(cmd *cobra.Command, args []string) error {
			if timeout <= 0 {
				return usagef("--timeout %s: expected a time above 0", timeout)
			}
			return a.rolloutStatus(cmd.Context(), args, watch, timeout)
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&watch, "watch", "w", true, "wait until the set is rolled out")
	f.DurationVar(&timeout, "timeout", 30*time.Second, "how long to wait")
	a.bindNetwork(f, "")
	return cmd
}

func (a *app) rolloutStatus(ctx context.Context, args []string, watch bool, timeout time.Duration) error {
	var sets []store.Revision
	err := a.openSets(ctx, func(s store.Store) (err error) {
		sets, err = a.setsOf(ctx, s, args)
		return err
	})
	if err != nil {
		return err
	}
	a.files = nil // they have named the set; its objects are in the store
	within, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	format, said := a.format(), map[string]string{}
	var all []rolloutState
	for {
		seen, err := a.rolloutStates(within, sets)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			all = seen
		case within.Err() == nil:
			return err
		case all == nil:
			return statusError{exitUnavailable, fmt.Sprintf("%s could not be looked at in %s", count(len(sets), "set"), timeout)}
		}
		waiting := slices.ContainsFunc(all, func(s rolloutState) bool { return s.Ready < s.Objects && len(s.Changed)+len(s.Gone) == 0 })
		over := !watch || within.Err() != nil || err != nil
		if format == "text" {
			for _, s := range all {
				if text := s.progress(); s.Ready < s.Objects && waiting && text != said[s.Set] {
					said[s.Set] = text
					fmt.Fprintln(a.out, text)
				}
			}
		}
		if waiting && !over {
			pause(within, askAgain)
			continue
		}
		return a.endStatus(format, all, timeout, watch)
	}
}

// progress is how far a set is, in kubectl's words.
func (s *rolloutState) progress() string {
	name := quoted(rollout.Name(s.Set))
	if s.Ready < s.Objects {
		return fmt.Sprintf("Waiting for set %s rollout to finish: %d of %s ready...", name, s.Ready, count(s.Objects, "object"))
	}
	return fmt.Sprintf("set %s successfully rolled out: revision %d, %s", name, s.Revision, count(s.Objects, "object"))
}

// endStatus prints how the sets stand at the end.
func (a *app) endStatus(format string, all []rolloutState, timeout time.Duration, watch bool) error {
	var err error
	switch format {
	case "json":
		err = printJSON(a.out, all)
	case "yaml":
		err = printYAML(a.out, all)
	}
	if err != nil {
		return err
	}
	var texts []string
	code := exitUnavailable
	for _, s := range all {
		name := quoted(rollout.Name(s.Set))
		switch {
		case len(s.Changed)+len(s.Gone) > 0:
			code = exitFailed
			texts = append(texts, fmt.Sprintf("set %s is not as revision %d applied it:", name, s.Revision))
			for _, k := range s.Changed {
				texts = append(texts, "  "+k+" was changed since")
			}
			for _, k := range s.Gone {
				texts = append(texts, "  "+k+" belongs to the set no more")
			}
		case s.Ready < s.Objects:
			after := ""
			if watch {
				after = fmt.Sprintf(" after %s", timeout)
			}
			texts = append(texts, fmt.Sprintf("set %s is not rolled out%s:", name, after))
			for k, why := range s.NotReady {
				texts = append(texts, fmt.Sprintf("  %s is not ready: %s", k, why))
			}
			slices.Sort(texts[len(texts)-len(s.NotReady):])
		case format == "text":
			fmt.Fprintln(a.out, s.progress())
		}
	}
	if texts == nil {
		return nil
	}
	return statusError{code, strings.Join(texts, "\n")}
}

// rolloutStates looks at sets once.
func (a *app) rolloutStates(ctx context.Context, sets []store.Revision) ([]rolloutState, error) {
	w, err := a.open(ctx)
	if err != nil {
		return nil, err
	}
	defer a.closing(w)
	var all []rolloutState
	for _, r := range sets {
		newest, err := w.store.Revisions(ctx, store.RevisionQuery{Set: r.Set, Newest: true})
		if err != nil {
			return all, err
		}
		state, err := rollout.Inspect(ctx, w.store, newest[0])
		if err != nil {
			return all, err
		}
		s := rolloutState{Set: r.Set, Revision: newest[0].Number, Commit: newest[0].Commit, Time: newest[0].Time, Objects: len(state.Members), Changed: []string{}, Gone: []string{}, NotReady: map[string]string{}}
		var keys []v1.Key
		for i := range state.Members {
			keys = append(keys, state.Members[i].Key())
		}
		for _, k := range state.Changed {
			s.Changed = append(s.Changed, placedName(k))
		}
		for _, k := range state.Gone {
			s.Gone = append(s.Gone, placedName(k))
		}
		seen, states, err := a.look(ctx, w, keys)
		for _, k := range keys {
			status := seen[k]
			c := status.Condition(v1.ConditionReady)
			if c.Status == v1.ConditionTrue {
				s.Ready++
				continue
			}
			s.NotReady[placedName(k)] = cmp.Or(c.Message, "it was not looked at in time")
			if state := stateOf(states, k); state != nil && !state.Ready {
				s.NotReady[placedName(k)] = reasonText(*state)
			}
		}
		if all = append(all, s); err != nil {
			return all, err
		}
	}
	return all, nil
}
