package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/rollout"
	"toolctl.dev/toolctl/pkg/source"
	"toolctl.dev/toolctl/pkg/store"
)

func newRolloutCmd(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "rollout",
		Short: "Show revisions, wait for a rollout, or roll back",
		Long: `Each apply creates a revision of its set: who applied which changes when, and from which
commit. 'rollout history' lists the revisions that the store keeps, 'rollout undo' applies
the manifests of one again, and 'rollout status' shows whether the set is ready.

SET is the name given with 'apply --set', or the path given with -f. Without SET, the
commands use the set of the files given with -f, or else the only set of the store.`,
		Example: `  toolctl rollout history payments
  toolctl rollout undo payments --to-revision 3
  toolctl rollout status -f manifests/`,
	}, newRolloutHistoryCmd(a), newRolloutStatusCmd(a), newRolloutUndoCmd(a))
}

var oneSet = upToOne("one set")

// setNamed returns the set in the arguments, or "" without arguments.
func setNamed(args []string) (string, error) {
	if len(args) == 0 {
		return "", nil
	}
	if args[0] == "" {
		return "", usagef("the name of the set is empty")
	}
	return args[0], nil
}

func newRolloutHistoryCmd(a *app) *cobra.Command {
	var number int64
	cmd := &cobra.Command{
		Use:   "history [SET]",
		Short: "List the revisions of a set",
		Long: `List the revisions of a set that the store keeps, or of all sets without SET. With
--revision, the command shows one revision and its changes; -o json and yaml also show its
manifests. The suffix -dirty marks a commit with uncommitted changes at the time of the apply.`,
		Annotations: formats("text", "json", "yaml"),
		Example: `  toolctl rollout history
  toolctl rollout history payments --revision 3
  toolctl rollout history payments --revision 3 -o yaml`,
		Args:              oneSet,
		ValidArgsFunction: a.fromStore(noFiles, appliedSet),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("revision") && number <= 0 {
				return usagef("--revision %d: expected a number from 1", number)
			}
			set, err := setNamed(args)
			if err != nil {
				return err
			}
			verb := &action.RolloutHistory{Config: a.stored(cmd.Context()), Set: set}
			if number > 0 {
				r, manifests, err := verb.Show(cmd.Context(), number)
				return printed(a, revisionText)(revisionView{r, manifests}, err)
			}
			all, err := verb.Run(cmd.Context())
			if err != nil {
				return err
			}
			return a.printRevisions(all)
		},
	}
	cmd.Flags().Int64Var(&number, "revision", 0, "show this revision")
	_ = cmd.RegisterFlagCompletionFunc("revision", a.fromStore(inOrder, a.revisions))
	return cmd
}

func (a *app) printRevisions(all []store.Revision) error {
	if done, err := a.encoded(a.format(), all); done {
		return err
	}
	for i := 0; i < len(all); {
		if i > 0 {
			fmt.Fprintln(a.out)
		}
		set := all[i].Set
		fmt.Fprintf(a.out, "set %q\n", rollout.Name(set))
		t := newTable(a.out, "REVISION", "APPLIED", "BY", "COMMIT", "OBJECTS", "CHANGES", "CAUSE")
		for ; i < len(all) && all[i].Set == set; i++ {
			r := &all[i]
			t.row(strconv.FormatInt(r.Number, 10), clock(r.Time), r.By, shortCommit(r.Commit), strconv.Itoa(r.Objects), changesText(r.Changes), causeText(r))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// shortCommit shortens a commit or the digest of a package for tables.
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

// changesText counts the changes of a revision.
func changesText(changes []store.RevisionChange) string {
	n, taken := map[store.Action]int{}, 0
	for _, c := range changes {
		n[c.Action]++
		if c.TakenFrom != "" {
			taken++
		}
	}
	n["taken over"] = taken
	var parts []string
	for _, action := range []store.Action{store.Created, store.Configured, store.Pruned, "taken over"} {
		if n[action] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[action], action))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}

// causeText describes what created a revision.
func causeText(r *store.Revision) string {
	if r.UndoOf > 0 {
		return fmt.Sprintf("%s to revision %d", r.Command, r.UndoOf)
	}
	return strings.TrimSpace(r.Command + " " + r.Source)
}

// revisionView is the result of 'rollout history --revision'.
type revisionView struct {
	store.Revision
	Manifests []v1.Object `json:"manifests"`
}

func revisionText(view revisionView) (string, error) {
	var b strings.Builder
	line := fields{&b}.line
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
		fmt.Fprintf(&b, "  %s %s\n", clip.Line(rollout.ObjectName(c.Key())), clip.Line(text))
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}
