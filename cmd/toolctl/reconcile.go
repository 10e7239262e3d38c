package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/telemetry"
)

type reconcileOptions struct {
	*app
	action.Reconcile
	once bool
	mode dryRunMode
}

func newReconcileCmd(a *app) *cobra.Command {
	o := &reconcileOptions{app: a, Reconcile: action.Reconcile{Overrides: action.KeepOverrides}}
	cmd := &cobra.Command{
		Use:   "reconcile --source ADDRESS [--once]",
		Short: "Keep the store in sync with a repository",
		Long: `Pull manifests from a repository and keep a set of the store equal to them: toolctl creates
new objects, updates changed ones, and deletes those that the repository no longer has. It
also reverts manual changes in the store. Each commit is applied as a whole or not at all: a
commit with an error changes nothing, and the log names the commit, the file and the line.

toolctl checks the repository at every interval. With --once it does so once, and the exit code
shows the result. Each applied commit is a revision of the set. --set names the set; by default
its name is the address without the ref. toolctl refuses an empty source unless --allow-empty
allows it to delete the whole set. It refuses objects that belong to other sets unless
--take-over moves them.

Overrides of descriptions ('toolctl override') survive every apply, so the served text can
differ from the repository. --overrides keep (the default) keeps them and logs them once; report
logs a warning, and --once exits with code 1; remove deletes the overrides of objects in the set,
and the audit log and 'toolctl override history' keep a record.

--dry-run prints what the newest commit would change without changing it.

Output formats of --once (-o): table (one line per object), name, json.`,
		Annotations: formats("table", "name", "json"),
		Example: `  toolctl reconcile --source 'git+https://git.example.com/team/tools//prod?ref=main' --interval 1m
  toolctl reconcile --source git+file:///srv/tools.git --once --set tools`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	f := cmd.Flags()
	bindPull(f, &o.Pull)
	f.BoolVar(&o.once, "once", false, "reconcile once, then exit")
	bindDryRun(f, &o.mode, "print what --once would change without changing it")
	f.BoolVar(&o.AllowEmpty, "allow-empty", false, "allow reconcile to delete the whole set when no manifests are found")
	f.StringVar(&o.Set, "set", "", "name of the set (default: the address without its ref)")
	f.BoolVar(&o.TakeOver, "take-over", false, "move objects from other sets into this set")
	bindChoice(cmd, &o.Overrides, "overrides", "how to treat overrides of objects in the set: keep, report or remove", action.KeepOverrides, action.ReportOverrides, action.RemoveOverrides)
	_ = cmd.RegisterFlagCompletionFunc("set", a.fromStore(noFiles, namedSets))
	return cmd
}

func (o *reconcileOptions) run(ctx context.Context) error {
	o.DryRun = o.mode.on()
	o.once = o.once || o.DryRun
	if !o.once {
		o.log = slog.New(telemetry.LogHandler(slog.NewJSONHandler(o.err, nil)))
		o.lasting = true
	}
	o.Config, o.Logger = o.config(ctx), o.logger()
	if !o.once {
		return o.Follow(ctx)
	}
	did, err := o.Run(ctx)
	if err != nil {
		return err
	}
	o.printKept(did.Kept)
	if err := o.printChanges(did.Changes, o.DryRun); err != nil {
		return err
	}
	return o.tellOverrides(did.Overrides)
}

// tellOverrides names the overrides that were found. With report, they are an error.
func (o *reconcileOptions) tellOverrides(all []action.Overridden) error {
	for i := range all {
		name, by := clip.Line(objectName(all[i].Key)), &all[i].By
		switch {
		case o.Overrides != action.RemoveOverrides:
			fmt.Fprintf(o.err, "warning: %s: %s\n", name, clip.Line(by.Drift()))
		case o.DryRun:
			fmt.Fprintf(o.err, "%s: %s would be removed\n", name, clip.Line(by.String()))
		default:
			fmt.Fprintf(o.err, "%s: %s is removed\n", name, clip.Line(by.String()))
		}
	}
	if len(all) > 0 && o.Overrides == action.ReportOverrides {
		return statusError{exitFailed, count(len(all), "override") + ": served text differs from the source"}
	}
	return nil
}
