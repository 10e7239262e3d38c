package action

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/plan"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/source"
	"toolctl.dev/toolctl/pkg/store"
)

// DryRun selects how a dry run of [Apply] checks the files.
type DryRun string

// The modes of a dry run.
const (
	DryRunNone   DryRun = ""       // the changes are applied
	DryRunServer DryRun = "server" // the files are compared with the store
	DryRunClient DryRun = "client" // the files are checked on their own
)

// Apply applies manifests to the store in one transaction.
type Apply struct {
	*Config
	Selection
	DryRun DryRun
	// Plan is applied exactly as it is; the error is a [plan.StaleError] if an object in it has changed. Its
	// files and selection apply, but Files of the Config may replace its files.
	Plan *plan.Plan
	// History is the number of earlier revisions of the set to keep, from 0.
	History int
}

// Applied is the result of [Apply].
type Applied struct {
	Set     string
	DryRun  bool
	Changes []Change
	// Kept are the objects of the set that --prune left because of their annotation.
	Kept []v1.Key
	// Left are the objects that stay in another set, by the name of that set, if the paths of that set contain all
	// applied paths. Although the applied files look like a part of that set, the apply creates no revision of it.
	Left map[string][]v1.Key
	// Servers are the MCP servers in the set, and the applied ones.
	Servers []v1.Key
	// Warnings are the warnings about the manifests.
	Warnings []v1.Violation
}

// Change is the change of one object.
type Change struct {
	store.Change
	// Abandoned names the counts of a policy that the change discards.
	Abandoned []string
}

// Run applies the manifests.
func (a *Apply) Run(ctx context.Context) (*Applied, error) {
	c, s, l := *a.Config, a.Selection, change
	switch {
	case a.History < 0:
		return nil, usagef("--revision-history-limit %d: expected 0 or more", a.History)
	case a.DryRun == DryRunClient && (a.Plan != nil || s.Prune):
		return nil, usagef("--dry-run=client reads only the files, and --plan and --prune need the store: use --dry-run=server")
	case a.Plan != nil && s != (Selection{}):
		return nil, usagef("--plan replaces --prune, --set, --take-over, --allow-empty and -l: leave them out")
	case a.DryRun == DryRunClient:
		l = without
	case a.DryRun == DryRunServer:
		l = compare
	}
	if p := a.Plan; p != nil {
		if len(c.Files) == 0 {
			c.Files, c.Overlays = p.Files, p.Overlays
		}
		if c.Namespace == "" {
			c.Namespace = p.Namespace
		}
		s = Selection{Set: p.Set, Selector: p.Selector, Prune: p.Prune, AllowEmpty: true, TakeOver: p.TakeOver}
	}
	in, err := s.read(ctx, &c, l)
	if err != nil {
		return nil, err
	}
	defer in.store.Close()
	if in.options.DryRun = a.DryRun != DryRunNone; !in.options.DryRun {
		in.options.Source, in.options.Commit = strings.Join(c.Files, ", "), source.Commit(ctx, c.Files, in.set.Objects)
		in.options.History, in.options.ChangesOnly = historyLimit(a.History), true
	}
	var changes []store.Change
	if a.Plan != nil {
		changes, err = a.Plan.Apply(ctx, in.store, in.set.Objects, store.ApplyOptions{
			By: c.By, DryRun: in.options.DryRun, Source: in.options.Source, Commit: in.options.Commit, History: in.options.History, ChangesOnly: in.options.ChangesOnly})
	} else {
		changes, err = in.store.Apply(ctx, in.set.Objects, in.options)
	}
	if owned := new(store.SetError); errors.As(err, &owned) {
		return nil, usagef("nothing was applied: %w: use its set, or take it over with --take-over", err)
	}
	if err != nil {
		return nil, err
	}
	done := &Applied{Set: in.options.Set, DryRun: in.options.DryRun, Changes: Changes(changes), Kept: in.kept.keys(), Warnings: in.warnings}
	for _, c := range changes {
		if c.After != nil && c.After.Set != done.Set && c.TakenFrom == "" && covers(c.After.Set, done.Set) {
			if done.Left == nil {
				done.Left = map[string][]v1.Key{}
			}
			done.Left[c.After.Set] = append(done.Left[c.After.Set], c.Key)
		}
	}
	if !done.DryRun {
		done.Servers, err = done.servers(ctx, in.store)
	}
	return done, err
}

// covers reports whether the paths of a set contain all paths of another set.
func covers(set, other string) bool {
	paths := strings.Split(set, "\n")
	for part := range strings.SplitSeq(other, "\n") {
		if !slices.ContainsFunc(paths, func(p string) bool { return strings.HasPrefix(part, p+string(filepath.Separator)) }) {
			return false
		}
	}
	return true
}

func (d *Applied) servers(ctx context.Context, s store.Store) (keys []v1.Key, err error) {
	list, err := s.List(ctx, store.ListOptions{Kind: v1.KindMCPServer})
	if err != nil {
		return nil, err
	}
	mine := map[v1.Key]bool{}
	for _, c := range d.Changes {
		mine[c.Key] = c.After != nil
	}
	for _, r := range list.Records {
		if mine[r.Key()] || r.Set == d.Set {
			keys = append(keys, r.Key())
		}
	}
	return keys, nil
}

// historyLimit converts a limit of revisions for the store, where 0 means the default.
func historyLimit(limit int) int {
	if limit == 0 {
		return -1
	}
	return limit
}

// Changes adds the discarded counts of policies to changes of a store.
func Changes(all []store.Change) []Change {
	out := make([]Change, len(all))
	policyOf := func(r *store.Record) *v1.ToolPolicy {
		if r == nil {
			return nil
		}
		p, _ := r.Object.(*v1.ToolPolicy)
		return p
	}
	for i, c := range all {
		out[i] = Change{Change: c, Abandoned: policy.Abandoned(policyOf(c.Before), policyOf(c.After))}
	}
	return out
}
