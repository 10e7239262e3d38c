package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/telemetry"
)

type reconcileOptions struct {
	setOptions
	source sourceOptions
	once   bool
	dryRun bool

	overrides string
}

var overrideChoices = []string{gateway.KeepOverrides, gateway.ReportOverrides, gateway.RemoveOverrides}

func newReconcileCmd(a *app) *cobra.Command {
	o := &reconcileOptions{setOptions: setOptions{app: a}}
	cmd := &cobra.Command{
		Use:   "reconcile --source ADDRESS [--once]",
		Short: "Make the store hold what a repository holds, again and again",
		Long: `Pull manifests from a repository and make a set of the store hold them, and no others:
what is new is created, what changed is configured, and what the repository no longer
has is removed. A commit is applied as a whole or not at all: one with an error changes
nothing, and the log names the commit, the file and the line. What was changed in the
store by hand is put back.

The repository is asked for news once an interval; with --once it is done once, and the
exit code says how it went. Each commit that is applied is a revision of the set, which
is named with --set, else by the address without its ref. A source without objects is refused
unless --allow-empty says that all of the set is to be removed. Objects of other sets are refused
unless --take-over takes them.

An override of a description ('toolctl override') outlives every apply, so that something else
is served than the repository says. With --overrides keep (the default) it stays, and is named
once; with report it is named as a warning, and --once ends with exit code 1; with remove those
of the set's objects are removed, which the audit and 'toolctl override history' keep.

--dry-run prints what the newest commit would change, and changes nothing.

Output formats of --once (-o): table (a line an object), name, json.`,
		Annotations: formats("table", "name", "json"),
		Example: `  toolctl reconcile --source 'git+https://git.example.com/team/tools//prod?ref=main' --interval 1m
  toolctl reconcile --source git+file:///srv/tools.git --once --set tools`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.source.address == "" {
				return usagef("name the repository with --source, such as git+https://git.example.com/team/tools//prod?ref=main")
			}
			if !slices.Contains(overrideChoices, o.overrides) {
				return usagef("--overrides %q: expected keep, report or remove", o.overrides)
			}
			if err := o.source.check(cmd, o.files); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	o.source.bind(f)
	f.BoolVar(&o.once, "once", false, "do it once and end")
	f.BoolVar(&o.dryRun, "dry-run", false, "print what --once would change, without changing it")
	f.BoolVar(&o.allowEmpty, "allow-empty", false, "remove all of the set when the source holds nothing")
	f.StringVar(&o.set, "set", "", "name of the set (default: the address without its ref)")
	f.BoolVar(&o.takeOver, "take-over", false, "take objects that belong to other sets into this one")
	f.StringVar(&o.overrides, "overrides", gateway.KeepOverrides, "what becomes of overrides of the set's objects: keep, report or remove")
	_ = cmd.RegisterFlagCompletionFunc("overrides", cobra.FixedCompletions(overrideChoices, noFiles))
	_ = cmd.RegisterFlagCompletionFunc("set", a.fromStore(noFiles, namedSets))
	return cmd
}

func (o *reconcileOptions) run(ctx context.Context) error {
	o.set, o.once = cmp.Or(o.set, o.source.at.Set()), o.once || o.dryRun
	if !o.once {
		o.log = slog.New(telemetry.LogHandler(slog.NewJSONHandler(o.err, nil)))
		o.lasting = true
	}
	st, err := o.openStore(ctx, !o.dryRun)
	if o.dryRun && errors.As(err, new(usageError)) {
		st, err = emptyStore(ctx) // all would be created
	}
	if err != nil {
		return err
	}
	defer o.closing(st)
	remote, err := o.source.remote(o.app, false, manifest.Options{Layout: true, AllowEmpty: o.allowEmpty}, func(ctx context.Context, set *manifest.Set) ([]v1.Violation, error) {
		beside, err := gateway.BesideSet(ctx, st, o.set)
		if err != nil {
			return nil, err
		}
		return o.checkSet(ctx, set, beside)
	})
	if err != nil {
		return err
	}
	defer o.closing(remote)
	in := &applyInput{kept: map[v1.Key]bool{}}
	r := &gateway.Reconciler{Remote: pulledFrom{remote}, Store: st, Set: o.set, Overrides: o.overrides, Options: func(set *manifest.Set) store.ApplyOptions {
		options := store.ApplyOptions{By: o.whoami(), Keep: o.keep(set, in), DryRun: o.dryRun}
		if o.takeOver {
			options.Others = store.TakeOthers
		}
		return options
	}}
	if !o.once {
		return r.Follow(ctx, o.log)
	}
	did, err := r.Once(ctx)
	if errors.As(err, new(*store.SetError)) {
		return usageError{err}
	}
	if err != nil {
		return err
	}
	in.warnKept(o.err)
	if err := o.printChanges(o.format(), did.Changes, o.dryRun); err != nil {
		return err
	}
	return o.tellOverrides(did.Overrides)
}

// tellOverrides names the overrides that were found. With report they are a failure.
func (o *reconcileOptions) tellOverrides(all []gateway.Overridden) error {
	for i := range all {
		name, by := clip.Line(objectName(all[i].Key)), &all[i].By
		switch {
		case o.overrides != gateway.RemoveOverrides:
			fmt.Fprintf(o.err, "warning: %s: %s\n", name, clip.Line(by.Drift()))
		case o.dryRun:
			fmt.Fprintf(o.err, "%s: %s would be removed\n", name, clip.Line(by.String()))
		default:
			fmt.Fprintf(o.err, "%s: %s is removed\n", name, clip.Line(by.String()))
		}
	}
	if len(all) > 0 && o.overrides == gateway.ReportOverrides {
		return statusError{exitFailed, count(len(all), "override") + ": served text differs from the source"}
	}
	return nil
}
