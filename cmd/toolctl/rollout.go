package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/plan"
	"toolctl.dev/toolctl/pkg/rollout"
	"toolctl.dev/toolctl/pkg/source"
	"toolctl.dev/toolctl/pkg/store"
)

func newRolloutCmd(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "rollout",
		Short: "Show what was applied, and go back to it",
		Long: `Each apply is a revision of its set: who applied what and when, from which commit, and
what it changed. 'rollout history' lists the revisions that are kept, 'rollout undo'
applies the manifests of one again, and 'rollout status' says whether the set is ready.

SET is the name given with 'apply --set', or the path that was given with -f. Without it
the commands are about the set of the files given with -f, else about the only set of the
store.`,
		Example: `  toolctl rollout history payments
  toolctl rollout undo payments --to-revision 3
  toolctl rollout status -f manifests/`,
	}, newRolloutHistoryCmd(a), newRolloutStatusCmd(a), newRolloutUndoCmd(a))
}

var oneSet = upToOne("one set")

// openSets opens the store for a command on sets; files only name one.
func (a *app) openSets(ctx context.Context, do func(store.Store) error) error {
	s, err := a.openStore(ctx, false)
	if err != nil {
		return err
	}
	defer a.closing(s)
	return do(s)
}

// setsOf returns the newest revision of the set that the arguments or the files name, else of
// all sets.
func (a *app) setsOf(ctx context.Context, s store.Store, args []string) ([]store.Revision, error) {
	newest, err := s.Revisions(ctx, store.RevisionQuery{Newest: true})
	if err != nil {
		return nil, err
	}
	var names []string
	switch {
	case len(args) > 0 && len(a.files) > 0:
		return nil, usagef("-f names a set too: leave out one of -f and %s", quoted(args[0]))
	case len(args) > 0:
		if args[0] == "" {
			return nil, usagef("the name of the set is empty")
		}
		names = append(names, strings.ReplaceAll(args[0], ", ", "\n"), args[0])
	case len(a.files) == 0:
		if len(newest) == 0 {
			return nil, &v1.NotFoundError{Kind: "Set", Name: "any"}
		}
		return newest, nil
	}
	files := a.files
	if len(args) > 0 {
		files = args
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

// setOf returns the newest revision of the one set that is meant.
func (a *app) setOf(ctx context.Context, s store.Store, args []string) (store.Revision, error) {
	sets, err := a.setsOf(ctx, s, args)
	if err != nil {
		return store.Revision{}, err
	}
	if len(sets) > 1 {
		var names []string
		for _, r := range sets {
			names = append(names, quoted(rollout.Name(r.Set)))
		}
		return store.Revision{}, usagef("the store has %s, %s: name one", count(len(sets), "set"), strings.Join(names, ", "))
	}
	return sets[0], nil
}

func newRolloutHistoryCmd(a *app) *cobra.Command {
	var number int64
	cmd := &cobra.Command{
		Use:   "history [SET]",
		Short: "List the revisions of a set",
		Long: `List the revisions of a set that are kept, of all sets when none is named. With --revision
one is shown with what it changed; -o json and yaml show its manifests, too. A commit that
ends in -dirty is one of which files had changed when they were applied.

Output formats (-o): text, json, yaml.`,
		Annotations: formats("text", "json", "yaml"),
		Example: `  toolctl rollout history
  toolctl rollout history payments --revision 3
  toolctl rollout history payments --revision 3 -o yaml`,
		Args:              oneSet,
		ValidArgsFunction: a.fromStore(noFiles, appliedSet),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, format := cmd.Context(), a.format()
			if cmd.Flags().Changed("revision") && number <= 0 {
				return usagef("--revision %d: expected a number from 1", number)
			}
			return a.openSets(ctx, func(s store.Store) error {
				if number > 0 {
					return a.showRevision(ctx, s, args, number, format)
				}
				sets, err := a.setsOf(ctx, s, args)
				if err != nil {
					return err
				}
				all := []store.Revision{}
				for _, newest := range sets {
					revisions, err := s.Revisions(ctx, store.RevisionQuery{Set: newest.Set})
					if err != nil {
						return err
					}
					all = append(all, revisions...)
				}
				return a.printRevisions(format, all)
			})
		},
	}
	cmd.Flags().Int64Var(&number, "revision", 0, "show this revision")
	_ = cmd.RegisterFlagCompletionFunc("revision", a.fromStore(inOrder, a.revisions))
	return cmd
}

func (a *app) printRevisions(format string, all []store.Revision) error {
	if done, err := a.encoded(format, all); done {
		return err
	}
	var t *table
	set := ""
	for i, r := range all {
		if i == 0 || r.Set != set {
			if t != nil {
				if err := t.Flush(); err != nil {
					return err
				}
				fmt.Fprintln(a.out)
			}
			set = r.Set
			fmt.Fprintf(a.out, "set %s\n", quoted(rollout.Name(set)))
			t = newTable(a.out, "REVISION", "APPLIED", "BY", "COMMIT", "OBJECTS", "CHANGES", "CAUSE")
		}
		t.row(strconv.FormatInt(r.Number, 10), clock(r.Time), r.By, shortCommit(r.Commit), strconv.Itoa(r.Objects), changesText(r.Changes), causeText(&r))
	}
	if t == nil {
		return nil
	}
	return t.Flush()
}

// shortCommit is a commit, or the digest of a package, as tables show it.
func shortCommit(commit string) string {
	const letters, digest = 12, "sha256:"
	name, dirty := strings.CutSuffix(commit, source.Dirty)
	kept := letters
	if strings.HasPrefix(name, digest) {
		kept += len(digest)
	}
	name = name[:min(len(name), kept)]
	if dirty {
		name += source.Dirty
	}
	return name
}

// changesText counts what a revision changed.
func changesText(changes []store.RevisionChange) string {
	var parts []string
	for _, action := range []store.Action{store.Created, store.Configured, store.Pruned} {
		n := 0
		for _, c := range changes {
			if c.Action == action {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, action))
		}
	}
	taken := 0
	for _, c := range changes {
		if c.TakenFrom != "" {
			taken++
		}
	}
	if taken > 0 {
		parts = append(parts, fmt.Sprintf("%d taken over", taken))
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}

// causeText says what made a revision.
func causeText(r *store.Revision) string {
	if r.UndoOf > 0 {
		return fmt.Sprintf("%s to revision %d", r.Command, r.UndoOf)
	}
	return strings.TrimSpace(r.Command + " " + r.Source)
}

// revisionView is what 'rollout history --revision' prints.
type revisionView struct {
	store.Revision
	Manifests []v1.Object `json:"manifests"`
}

func (a *app) showRevision(ctx context.Context, s store.Store, args []string, number int64, format string) error {
	newest, err := a.setOf(ctx, s, args)
	if err != nil {
		return err
	}
	records, err := s.RevisionObjects(ctx, newest.Set, number)
	if err != nil {
		return err
	}
	found, err := s.Revisions(ctx, store.RevisionQuery{Set: newest.Set, Number: number})
	if err != nil || len(found) == 0 { // it went between the two
		return cmp.Or[error](err, store.NoRevision(newest.Set, number, nil))
	}
	view := revisionView{Revision: found[0], Manifests: []v1.Object{}}
	for _, r := range records {
		view.Manifests = append(view.Manifests, r.Object)
	}
	if done, err := a.encoded(format, view); done {
		return err
	}
	line := func(key, value string) { fmt.Fprintf(a.out, "%-13s%s\n", key+":", clip.Line(cmp.Or(value, "-"))) }
	line("Set", rollout.Name(view.Set))
	line("Revision", strconv.FormatInt(view.Number, 10))
	line("Applied", clock(view.Time))
	line("By", view.By)
	line("Cause", causeText(&view.Revision))
	line("Commit", view.Commit)
	line("Digest", view.Digest)
	line("Objects", strconv.Itoa(view.Objects))
	line("Changes", changesText(view.Changes))
	for _, c := range view.Changes {
		text := string(c.Action)
		if c.TakenFrom != "" {
			text += fmt.Sprintf(", taken over from set %q", rollout.Name(c.TakenFrom))
		}
		fmt.Fprintf(a.out, "  %s %s\n", clip.Line(rollout.ObjectName(c.Key())), clip.Line(text))
	}
	return nil
}
