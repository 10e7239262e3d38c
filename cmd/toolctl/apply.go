package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/internal/tty"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/overlay"
	"toolctl.dev/toolctl/pkg/plan"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/store"
)

type applyOptions struct {
	setOptions
	mode     dryRunMode
	plan     string
	wait     bool
	patience time.Duration
	history  int
}

func newApplyCmd(a *app) *cobra.Command {
	o := &applyOptions{setOptions: setOptions{app: a}}
	cmd := &cobra.Command{
		Use:        "apply (-f PATH | --plan FILE)",
		Short:      "Put manifests into the store",
		SuggestFor: []string{"create", "replace"},
		Long: `Put manifests into the store, all or nothing: when one has a violation, nothing
changes. Each object is created, configured or unchanged.

With --prune, what an earlier apply of the same set put there and this one does
not have is removed, but not what now is skipped because it is not one of our manifests. A set
is named with --set; without it, by the paths given with -f. An object that belongs
to another set is refused under --set, and stays in its set without --set;
--take-over moves it. A source that is empty or gone is refused, unless --allow-empty
says that all of the set is to be removed. An object with the annotation
toolctl.dev/prune: disabled is never pruned, and stays in its set.

With --plan, what 'toolctl diff -o plan' said is carried out, and no more. When a
manifest or an object that the plan touches has changed since, nothing is applied, and
each of them is named.

A limit of a policy keeps its count while its name, else its tools, and its per and
by stay the same. An edit that leaves a count behind is told on stderr.

Each apply is a revision of its set, which notes the commit when the files are in a work
tree of git: see 'toolctl rollout'.

With -n an object that names no namespace goes into that one.

--dry-run prints what would change, compared with the store. --dry-run=client needs no
store: it checks the files on their own, and lists each object as created.

Output formats (-o): table (a line an object), name, json.`,
		Annotations: formats("table", "name", "json"),
		Example: `  toolctl apply -f manifests/
  toolctl apply -f manifests/ --prune --dry-run
  toolctl diff -f manifests/ -o plan > plan.json; toolctl apply --plan plan.json
  cat tool.yaml | toolctl apply -f -`,
		Args: filesOnly,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	f := cmd.Flags()
	o.bind(f)
	f.Var(&o.mode, "dry-run", "print the changes without applying them: server compares with the store, client reads only the files")
	f.Lookup("dry-run").NoOptDefVal = dryRunServer
	f.StringVar(&o.plan, "plan", "", "carry out this plan of 'toolctl diff -o plan', or - for stdin; -f says where its manifests are now")
	f.BoolVar(&o.wait, "wait", false, "wait until every MCP server of the set is ready")
	f.DurationVar(&o.patience, "timeout", 30*time.Second, "how long --wait waits")
	f.IntVar(&o.history, "revision-history-limit", store.DefaultHistory, "how many earlier revisions of the set to keep")
	a.bindNetwork(f, "with --wait: ")
	_ = cmd.RegisterFlagCompletionFunc("set", a.fromStore(noFiles, namedSets))
	return cmd
}

// dryRunMode is --dry-run, with the values of kubectl.
type dryRunMode string

const (
	dryRunNone   = ""
	dryRunServer = "server"
	dryRunClient = "client"
)

func (m *dryRunMode) String() string { return string(*m) }
func (m *dryRunMode) Type() string   { return "server|client" }

func (m *dryRunMode) Set(text string) error {
	switch text {
	case dryRunServer, "true":
		*m = dryRunServer
	case dryRunClient:
		*m = dryRunClient
	case "none", "false":
		*m = dryRunNone
	default:
		return errors.New("expected server, client or none")
	}
	return nil
}

// filesOnly refuses a path that stands without -f.
func filesOnly(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usagef("unexpected argument %q: name files with -f, as in -f %s", args[0], args[0])
}

// dryRun reports whether nothing is changed, in either mode.
func (o *applyOptions) dryRun() bool { return o.mode != dryRunNone }

func (o *applyOptions) run(ctx context.Context) error {
	format := o.format()
	switch {
	case o.wait && o.patience <= 0:
		return usagef("--timeout %s: expected a time above 0", o.patience)
	case o.history < 0:
		return usagef("--revision-history-limit %d: expected 0 or more", o.history)
	case o.mode == dryRunClient && (o.plan != "" || o.prune):
		return usagef("--dry-run=client reads only the files, and --plan and --prune need the store: use --dry-run=server")
	}
	o.alone = o.mode == dryRunClient
	if o.plan != "" {
		return o.runPlan(ctx, format)
	}
	in, err := o.open(ctx, o.dryRun())
	if err != nil {
		return err
	}
	defer o.closing(in.store)
	o.lean(in)
	o.from(ctx, in, &in.options)
	changes, err := in.store.Apply(ctx, in.set.Objects, in.options)
	return o.finish(ctx, format, in, changes, err)
}

// runPlan carries out a plan.
func (o *applyOptions) runPlan(ctx context.Context, format string) error {
	if o.prune || o.set != "" || o.takeOver || o.allowEmpty || o.selector != "" {
		return usagef("--plan says all that --prune, --set, --take-over, --allow-empty and -l would: leave them out")
	}
	p, err := o.readPlan(ctx)
	if err != nil {
		return err
	}
	if len(o.files) == 0 {
		o.files, o.overlays = p.Files, p.Overlays
	}
	if o.namespace == "" {
		o.namespace = p.Namespace
	}
	o.selector, o.set, o.prune, o.takeOver, o.allowEmpty = p.Selector, p.Set, p.Prune, p.TakeOver, true
	in, err := o.open(ctx, o.dryRun())
	if err != nil {
		return err
	}
	defer o.closing(in.store)
	o.lean(in)
	options := store.ApplyOptions{By: o.whoami()}
	o.from(ctx, in, &options)
	changes, err := p.Apply(ctx, in.store, in.set.Objects, options)
	if stale := new(plan.StaleError); errors.As(err, &stale) {
		return statusError{exitInvalid, stale.Error()}
	}
	return o.finish(ctx, format, in, changes, err)
}

func (o *applyOptions) readPlan(ctx context.Context) (*plan.Plan, error) {
	in := tty.Stdin(ctx, o.in)
	if o.plan != "-" {
		f, err := regular.Open(o.plan)
		if err != nil {
			return nil, usageError{err}
		}
		defer f.Close()
		in = f
	}
	p, err := plan.Read(in)
	if err != nil {
		return nil, statusError{exitInvalid, o.plan + ": " + err.Error()}
	}
	return p, nil
}

// finish prints what was done, and waits for the servers.
func (o *applyOptions) finish(ctx context.Context, format string, in *applyInput, changes []store.Change, err error) error {
	if owned := new(store.SetError); errors.As(err, &owned) {
		return usagef("nothing was applied: %w: use its set, or take it over with --take-over", err)
	}
	if err != nil {
		return err
	}
	in.warnKept(o.err)
	if err := o.printChanges(format, changes, o.dryRun()); err != nil || !o.wait || o.dryRun() {
		return err
	}
	return o.waitServers(ctx, in.store, in.options.Set, changes)
}

// loadAll reads and checks the manifests given with -f, which may name what is beside
// them; a violation that is not a warning fails it. Warnings are printed when it succeeds.
func (a *app) loadAll(ctx context.Context, beside []v1.Object) (*manifest.Set, error) {
	check, err := a.checking(a.files, beside)
	if err != nil {
		return nil, err
	}
	set, violations, err := check.Run(ctx)
	if err != nil {
		return nil, err
	}
	var errs []v1.Violation
	for _, f := range violations {
		if !f.IsWarning() {
			errs = append(errs, f)
		} else {
			fmt.Fprintln(a.err, f)
		}
	}
	if len(errs) > 0 {
		return nil, v1.NewValidationError(v1.ManifestInvalid, "", errs)
	}
	return set, nil
}

// checking checks the manifests of paths, which may name what is beside them.
func (a *app) checking(paths []string, beside []v1.Object) (action.Check, error) {
	if err := a.checkNamespace(); err != nil {
		return action.Check{}, err
	}
	rules, env, err := a.permits()
	if err != nil {
		return action.Check{}, err
	}
	warned := false // files may be read twice
	return action.Check{
		Load: func(ctx context.Context, places bool) (*manifest.Set, error) {
			opts := a.manifestOptions(ctx)
			opts.Fields, opts.Layout, opts.AllowEmpty = places, a.layout, a.allowEmpty
			set, err := manifest.Load(ctx, paths, opts)
			if err != nil {
				return nil, usageError{err}
			}
			if !warned {
				a.warnUnbuilt(set, paths)
			}
			warned = true
			return set, nil
		},
		Places:    a.places || slices.Contains(paths, "-"), // stdin is read once
		Namespace: a.namespace, Beside: beside, Options: gateway.Options{Env: a.env, AllowEnv: env, Permit: rules.Own()},
	}, nil
}

// warnUnbuilt says that folders were read file by file although they are to be built.
func (a *app) warnUnbuilt(set *manifest.Set, paths []string) {
	folders := set.Overlays
	if len(set.Objects) == 0 {
		for _, p := range paths {
			if !slices.Contains(a.overlays, p) && !slices.Contains(folders, filepath.Clean(p)) && overlay.Is(p) {
				folders = append(folders, p)
			}
		}
	}
	if len(folders) > 0 {
		fmt.Fprintf(a.err, "warning: %s with a kustomization.yaml read file by file, and not built: give -k %s, for example\n", count(len(folders), "folder"), folders[0])
	}
}

// checkSet returns every violation of manifests that were read, which may name what is beside them.
func (a *app) checkSet(ctx context.Context, set *manifest.Set, beside []v1.Object) ([]v1.Violation, error) {
	check, err := a.checking(nil, beside)
	if err != nil {
		return nil, err
	}
	return check.Set(ctx, set)
}

// intoNamespace puts objects that name no namespace into the one given with -n.
func (a *app) intoNamespace(objects []v1.Object) ([]v1.Violation, error) {
	if err := a.checkNamespace(); err != nil {
		return nil, err
	}
	return gateway.IntoNamespace(objects, a.namespace), nil
}

func (a *app) checkNamespace() error {
	if a.namespace != "" && (!v1.IsName(a.namespace) || strings.Contains(a.namespace, ".")) {
		return usagef("-n %q is not a legal name: expected lower-case letters, digits, '-' and '_'", a.namespace)
	}
	return nil
}

// change is one line of apply and delete with -o json.
type change struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Action    string `json:"action"`
	DryRun    bool   `json:"dry_run,omitempty"`
	// TakenFrom is the set that the object was taken over from.
	TakenFrom string `json:"taken_from,omitempty"`
	// Abandoned says which counts of a policy the change leaves behind.
	Abandoned []string `json:"abandoned_counts,omitempty"`
}

func (a *app) printChanges(format string, changes []store.Change, dryRun bool) error {
	lines := make([]change, len(changes))
	for i, c := range changes {
		lines[i] = change{Kind: c.Key.Kind, Namespace: c.Key.Namespace, Name: c.Key.Name, Action: string(c.Action), DryRun: dryRun, TakenFrom: c.TakenFrom, Abandoned: abandoned(c)}
		for _, text := range lines[i].Abandoned {
			fmt.Fprintf(a.err, "warning: %s: %s\n", objectName(c.Key), text)
		}
	}
	return a.printActions(format, lines)
}

// abandoned says which counts of a policy a change leaves behind.
func abandoned(c store.Change) []string {
	policyOf := func(r *store.Record) *v1.ToolPolicy {
		if r == nil {
			return nil
		}
		p, _ := r.Object.(*v1.ToolPolicy)
		return p
	}
	return policy.Abandoned(policyOf(c.Before), policyOf(c.After))
}

func (a *app) printActions(format string, lines []change) error {
	if format == "json" {
		return printJSON(a.out, lines)
	}
	for _, c := range lines {
		name := objectName(v1.Key{Kind: c.Kind, Name: c.Name})
		if format == "name" {
			fmt.Fprintln(a.out, name)
			continue
		}
		if c.Namespace != v1.DefaultNamespace {
			name += " in namespace " + c.Namespace
		}
		suffix := ""
		if c.TakenFrom != "" {
			suffix = fmt.Sprintf(", taken over from set %q", c.TakenFrom)
		}
		if c.DryRun {
			suffix += " (dry run)"
		}
		fmt.Fprintf(a.out, "%s %s%s\n", name, c.Action, suffix)
	}
	return nil
}
