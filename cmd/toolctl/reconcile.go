package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/diff"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/plan"
	"toolctl.dev/toolctl/pkg/source"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/telemetry"
)

type reconcileOptions struct {
	setOptions
	source sourceOptions
	once   bool
}

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

Output formats of --once (-o): table (a line an object), name, json.`,
		Annotations: formats("table", "name", "json"),
		Example: `  toolctl reconcile --source 'git+https://git.example.com/team/tools//prod?ref=main' --interval 1m
  toolctl reconcile --source git+file:///srv/tools.git --once --set tools`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.source.address == "" {
				return usagef("name the repository with --source, such as git+https://git.example.com/team/tools//prod?ref=main")
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
	f.BoolVar(&o.allowEmpty, "allow-empty", false, "remove all of the set when the source holds nothing")
	f.StringVar(&o.set, "set", "", "name of the set (default: the address without its ref)")
	f.BoolVar(&o.takeOver, "take-over", false, "take objects that belong to other sets into this one")
	_ = cmd.RegisterFlagCompletionFunc("set", a.completeSets)
	return cmd
}

func (o *reconcileOptions) run(ctx context.Context) error {
	o.set = cmp.Or(o.set, o.source.at.Set())
	if !o.once {
		o.log = slog.New(telemetry.LogHandler(slog.NewJSONHandler(o.err, nil)))
		o.lasting = true
	}
	st, err := o.openStore(ctx, true)
	if err != nil {
		return err
	}
	defer o.closing(st)
	remote, err := o.source.remote(o.app, false, manifest.Options{Layout: true, AllowEmpty: o.allowEmpty}, func(ctx context.Context, set *manifest.Set) ([]v1.Violation, error) {
		beside, err := o.beside(ctx, st)
		if err != nil {
			return nil, err
		}
		return o.checkSet(ctx, set, beside)
	})
	if err != nil {
		return err
	}
	defer o.closing(remote)
	if o.once {
		_, changes, err := o.round(ctx, remote, st)
		if err != nil {
			return err
		}
		return o.printChanges(o.format(), changes, false)
	}
	return o.follow(ctx, remote, st)
}

// beside is what manifests of the set may name: the objects of other sets. Those of this one
// are there only when the repository has them.
func (o *reconcileOptions) beside(ctx context.Context, st store.Store) ([]v1.Object, error) {
	list, err := st.List(ctx, store.ListOptions{})
	if err != nil {
		return nil, err
	}
	var others []store.Record
	for _, r := range list.Records {
		if r.Set != o.set {
			others = append(others, r)
		}
	}
	return gateway.Applied(others), nil
}

// round pulls once and applies what it got.
func (o *reconcileOptions) round(ctx context.Context, remote *source.Remote, st store.Store) (*diff.Report, []store.Change, error) {
	set, err := remote.Load(ctx)
	if err != nil {
		return nil, nil, sourceError(err)
	}
	s := remote.Status()
	in := &applyInput{kept: map[v1.Key]bool{}}
	options := store.ApplyOptions{Set: o.set, By: o.whoami(), Command: "reconcile", Source: s.Source, Commit: s.Revision, Keep: o.keep(set, in)}
	if o.takeOver {
		options.Others = store.TakeOthers
	}
	report, changes, err := plan.Reconcile(ctx, st, set.Objects, options)
	if owned := new(store.SetError); errors.As(err, &owned) {
		err = usagef("nothing was applied: %w: leave it out of one of them, or take it over with --take-over", err)
	}
	if err == nil && o.once {
		in.warnKept(o.err)
	}
	return report, changes, err
}

// follow goes on until ctx ends. What goes wrong is told once.
func (o *reconcileOptions) follow(ctx context.Context, remote *source.Remote, st store.Store) error {
	news, err := remote.Watch(ctx, nil)
	if err != nil {
		return err
	}
	remote.Pull() // the first time
	told := ""
	for range news {
		report, changes, err := o.round(ctx, remote, st)
		switch revision := remote.Status().Revision; {
		case ctx.Err() != nil:
		case err != nil:
			if text := err.Error(); text != told {
				told = text
				o.log.Error("nothing was changed", "set", o.set, "applied", revision, "error", text)
			}
		case report != nil:
			told = ""
			by := map[store.Action]int{}
			for _, c := range changes {
				by[c.Action]++
			}
			o.log.Info("applied", "set", o.set, "commit", revision, "created", by[store.Created], "configured", by[store.Configured],
				"pruned", by[store.Pruned], "unchanged", by[store.Unchanged], "breaking", report.Fails(diff.Breaking))
		case told != "":
			told = ""
			o.log.Info("the store is as the source says again", "set", o.set, "commit", revision)
		}
	}
	return nil
}
