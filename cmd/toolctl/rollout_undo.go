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
	action.RolloutUndo
	mode dryRunMode
	yes  bool
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
	f.Int64Var(&o.Number, "to-revision", 0, "revision to go back to (default: the newest with other manifests)")
	bindDryRun(f, &o.mode, "print the changes without applying them")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation")
	f.BoolVar(&o.TakeOver, "take-over", false, "take back objects that now belong to other sets")
	f.BoolVar(&o.Force, "force-conflicts", false, "also undo changes made outside the set")
	f.IntVar(&o.History, "revision-history-limit", store.DefaultHistory, "number of earlier revisions of the set to keep")
	_ = cmd.RegisterFlagCompletionFunc("to-revision", a.fromStore(inOrder, a.revisions))
	return cmd
}

func (o *undoOptions) run(cmd *cobra.Command, args []string) (err error) {
	ctx, table := cmd.Context(), o.format() == "table"
	if o.Set, err = setNamed(args); err != nil {
		return err
	}
	o.Config, o.DryRun = o.stored(ctx), o.mode.on()
	if o.Set == "" && !o.yes {
		o.Confirm = func(u *rollout.Undo) error { return o.ask(ctx, u) }
	}
	done, err := o.Run(ctx)
	if err != nil {
		return undoError(err)
	}
	name := rollout.Name(done.Set)
	if !done.Needed && table {
		return o.done(nil, "set %q skipped rollback (its manifests already match revision %d)", name, done.To)
	}
	if err := o.printChanges(done.Changes, o.DryRun); err != nil || !table {
		return err
	}
	did := "rolled back"
	if o.DryRun {
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
