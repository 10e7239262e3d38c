package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/rollout"
	"toolctl.dev/toolctl/pkg/store"
)

type undoOptions struct {
	*app
	number   int64
	dryRun   dryRunMode
	takeOver bool
	force    bool
	yes      bool
	history  int
}

func newRolloutUndoCmd(a *app) *cobra.Command {
	o := &undoOptions{app: a}
	cmd := &cobra.Command{
		Use:   "undo [SET]",
		Short: "Apply the manifests of an earlier revision again",
		Long: `Apply the manifests of an earlier revision of a set again, in one transaction, as a new
revision. Objects added to the set since then are deleted. Without --to-revision, toolctl
takes the newest revision whose manifests differ from the last one. Undoing twice restores
the present state.

If an edit, a delete or another set has changed objects since the last revision, toolctl names
the changes and undoes nothing. --force-conflicts undoes those changes too, and --take-over
takes back objects that now belong to other sets. toolctl warns when the undo discards counts.

You may leave out SET if the store has only one set: undo then prints the changes and
asks for confirmation, unless you pass --yes.

Output formats (-o): table (one line per object), name, json.`,
		Annotations: formats("table", "name", "json"),
		Example: `  toolctl rollout undo payments --dry-run
  toolctl rollout undo payments
  toolctl rollout undo payments --to-revision 3`,
		Args:              oneSet,
		ValidArgsFunction: a.fromStore(noFiles, appliedSet),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	f := cmd.Flags()
	f.Int64Var(&o.number, "to-revision", 0, "revision to go back to (default: the newest with other manifests)")
	bindDryRun(f, &o.dryRun, "print the changes without applying them")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation")
	f.BoolVar(&o.takeOver, "take-over", false, "take back objects that now belong to other sets")
	f.BoolVar(&o.force, "force-conflicts", false, "also undo changes made outside the set")
	f.IntVar(&o.history, "revision-history-limit", store.DefaultHistory, "number of earlier revisions of the set to keep")
	_ = cmd.RegisterFlagCompletionFunc("to-revision", a.fromStore(inOrder, a.revisions))
	return cmd
}

func (o *undoOptions) run(cmd *cobra.Command, args []string) error {
	ctx, table := cmd.Context(), o.format() == "table"
	switch {
	case o.number < 0:
		return usagef("--to-revision %d: expected a number from 1, or 0 for the newest with other manifests", o.number)
	case o.history < 0:
		return usagef("--revision-history-limit %d: expected 0 or more", o.history)
	}
	set, err := setNamed(args)
	if err != nil {
		return err
	}
	verb := &action.RolloutUndo{Config: o.stored(ctx), Set: set, Number: o.number, TakeOver: o.takeOver, Force: o.force, History: o.history, DryRun: o.dryRun.on()}
	if set == "" && !o.yes {
		verb.Confirm = func(u *rollout.Undo) error { return o.ask(ctx, u) }
	}
	done, err := verb.Run(ctx)
	if err != nil {
		return undoError(err)
	}
	name := rollout.Name(done.Set)
	if !done.Needed && table {
		return o.done(nil, "set %q skipped rollback (its manifests already match revision %d)", name, done.To)
	}
	if err := o.printChanges(done.Changes, o.dryRun.on()); err != nil || !table {
		return err
	}
	did := "rolled back"
	if o.dryRun.on() {
		did = "would be rolled back"
	}
	return o.done(nil, "set %q %s to revision %d", name, did, done.To)
}

// ask prints the changes of the undo to stderr, and asks whether to continue.
func (o *undoOptions) ask(ctx context.Context, u *rollout.Undo) error {
	for _, c := range u.Changes {
		fmt.Fprintf(o.err, "%s %s\n", objectName(c.Key), c.Action)
	}
	question := fmt.Sprintf("Roll set %s back to revision %d?", quoted(rollout.Name(u.From.Set)), u.To.Number)
	if !o.canAsk() {
		return usagef("%s There is no terminal to ask at: name the set, or pass --yes", question)
	}
	yes, err := o.confirm(ctx, question)
	if err != nil {
		return err
	}
	if !yes {
		return statusError{exitFailed, "nothing was undone"}
	}
	return nil
}

// undoError adds advice to the error of a refused undo.
func undoError(err error) error {
	if conflict := new(rollout.ConflictError); errors.As(err, &conflict) {
		return statusError{exitInvalid, conflict.Error() + "\n--force-conflicts also undoes that"}
	}
	if moved := new(store.ConflictError); errors.As(err, &moved) {
		return statusError{exitInvalid, fmt.Sprintf("nothing was undone: %s", err)}
	}
	if owned := new(store.SetError); errors.As(err, &owned) {
		return usagef("nothing was undone: %w: take it over with --take-over", err)
	}
	if none := new(rollout.NoEarlierError); errors.As(err, &none) {
		return statusError{exitNotFound, none.Error()}
	}
	return err
}
