package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/inspect"
	"toolctl.dev/toolctl/pkg/executors"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/store"
)

type applyOptions struct {
	*app
	dryRun   bool
	prune    bool
	set      string
	takeOver bool
}

func newApplyCmd(a *app) *cobra.Command {
	o := &applyOptions{app: a}
	cmd := &cobra.Command{
		Use:        "apply -f PATH",
		Short:      "Put manifests into the store",
		SuggestFor: []string{"create", "replace"},
		Long: `Put manifests into the store, all or nothing: when one has a violation, nothing
changes. Each object is created, configured or unchanged.

With --prune, what an earlier apply of the same set put there and this one does
not have is removed, but not what now is skipped because it is no manifest of ours. A set
is named with --set; without it, by the paths given with -f. An object that belongs
to another set is refused under --set, and stays in its set without --set;
--take-over moves it.

A limit of a policy keeps its count while its name, else its tools, and its per and
by stay the same. An edit that leaves a count behind is told on stderr.

With -n an object that names no namespace goes into that one.

Output formats (-o): table (a line an object), name, json.`,
		Annotations: formats("table", "name", "json"),
		Example: `  toolctl apply -f manifests/
  toolctl apply -f manifests/ --prune --dry-run
  cat tool.yaml | toolctl apply -f -`,
		Args: filesOnly,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.dryRun, "dry-run", false, "say what would change, and change nothing")
	f.BoolVar(&o.prune, "prune", false, "remove what an earlier apply of this set put there")
	a.bindSelector(f, "objects")
	f.StringVar(&o.set, "set", "", "name of the set (default: the paths given with -f)")
	_ = cmd.RegisterFlagCompletionFunc("set", a.completeSets)
	f.BoolVar(&o.takeOver, "take-over", false, "take objects that belong to other sets into this one")
	return cmd
}

// filesOnly refuses a path that stands without -f.
func filesOnly(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usagef("unexpected argument %q: name files with -f, as in -f %s", args[0], args[0])
}

func (o *applyOptions) run(ctx context.Context) error {
	format := o.format()
	if len(o.files) == 0 {
		return usagef("name the manifests to apply with -f")
	}
	has, err := o.selected()
	if err != nil {
		return err
	}
	if o.prune && o.selector != "" {
		return usagef("--prune and -l exclude each other: what -l leaves out would be removed")
	}
	others := store.RefuseOthers
	if o.set == "" {
		others = store.LeaveOthers
		if o.prune && slices.Contains(o.files, "-") {
			return usagef("--prune of stdin needs --set, which names what was applied before")
		}
		if o.set, err = setName(o.files); err != nil {
			return err
		}
	}
	if o.takeOver {
		others = store.TakeOthers
	}
	var beside []v1.Object
	s, err := o.openStore(ctx, false)
	var usage usageError
	missing := errors.As(err, &usage) // it is made when there is something to put into it
	if err == nil {
		defer o.closing(s)
		beside, err = applied(ctx, s)
	}
	if err != nil && !missing {
		return err
	}
	set, err := o.loadAll(ctx, beside)
	if err != nil {
		return err
	}
	set.Objects = slices.DeleteFunc(set.Objects, func(obj v1.Object) bool { return !has(obj) })
	if len(set.Objects) == 0 && o.selector != "" {
		return usagef("%s: no objects with the labels %s", strings.Join(o.files, ", "), o.selector)
	}
	if len(set.Objects) == 0 {
		return usagef("%s: no objects to apply", strings.Join(o.files, ", "))
	}
	if missing {
		if o.dryRun {
			s, err = stores().Open(ctx, "memory:", store.Options{Create: true}) // all would be created
		} else {
			s, err = o.openStore(ctx, true)
		}
		if err != nil {
			return err
		}
		defer o.closing(s)
	}
	for _, obj := range set.Objects {
		if h := obj.Head(); h.Kind != v1.KindToolPolicy && h.Kind != v1.KindScenario && slices.Contains(o.files, "-") {
			h.Fields = nil // see check: these are all places, and a store of them would be ten times as large
		}
	}
	changes, err := s.Apply(ctx, set.Objects, store.ApplyOptions{Set: o.set, Prune: o.prune, DryRun: o.dryRun, By: o.whoami(), Others: others, Keep: o.skippedIn(set)})
	if owned := new(store.SetError); errors.As(err, &owned) {
		return usagef("nothing was applied: %w: use its set, or take it over with --take-over", err)
	}
	if err != nil {
		return err
	}
	return o.printChanges(format, changes, o.dryRun)
}

// skippedIn says which applied objects the set may hold in a document that was skipped: one
// of the same name, or any of a file of which a part does not say what it is.
func (o *applyOptions) skippedIn(set *manifest.Set) func(store.Record) bool {
	if len(set.Skipped) == 0 {
		return nil
	}
	keys, files := map[v1.Key]bool{}, map[string]bool{}
	for _, s := range set.Skipped {
		if s.Key.Namespace == v1.DefaultNamespace && o.namespace != "" {
			keys[v1.Key{Kind: s.Key.Kind, Namespace: o.namespace, Name: s.Key.Name}] = true
		}
		if keys[s.Key] = true; s.Key.Name == "" {
			files[s.File] = true
		}
	}
	return func(r store.Record) bool { return keys[r.Key()] || files[r.Object.Head().Source.File] }
}

// applied returns what the store has already, for manifests that name it: stand-ins that
// have names and labels, and nothing to check.
func applied(ctx context.Context, s store.Store) ([]v1.Object, error) {
	list, err := s.List(ctx, store.ListOptions{})
	if err != nil {
		return nil, err
	}
	var known []v1.Object
	for _, r := range list.Records {
		stand := v1.NewObject(r.Key().Kind)
		*stand.Head() = v1.Header{APIVersion: v1.APIVersion, Kind: r.Key().Kind, Metadata: r.Object.Head().Metadata}
		switch stand := stand.(type) {
		case *v1.Tool:
			stand.Spec = v1.ToolSpec{Description: "applied", InputSchema: json.RawMessage(`{"type":"object"}`), MockResult: json.RawMessage("null")}
		case *v1.Prompt:
			stand.Spec.Template = "applied"
		case *v1.MCPServer:
			stand.Spec.Command = "applied"
		default:
			continue
		}
		known = append(known, stand)
	}
	return known, nil
}

// loadAll reads and checks the manifests given with -f, which may name what is beside
// them; a violation that is not a warning fails it. Warnings are printed when it succeeds.
func (a *app) loadAll(ctx context.Context, beside []v1.Object) (*manifest.Set, error) {
	set, violations, err := a.check(ctx, a.files, beside)
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

// check reads manifests and returns every violation that can be found without a call.
// The place of every field takes more memory than the objects, so the files are
// read for the places only when there is a violation that needs one.
func (a *app) check(ctx context.Context, paths []string, beside []v1.Object) (*manifest.Set, []v1.Violation, error) {
	places := slices.Contains(paths, "-") // stdin is read once
	set, violations, err := a.checkOnce(ctx, paths, beside, places)
	if err == nil && !places && len(violations) > len(set.Violations) {
		_, violations, err = a.checkOnce(ctx, paths, beside, true)
	}
	return set, violations, err
}

func (a *app) checkOnce(ctx context.Context, paths []string, beside []v1.Object, places bool) (*manifest.Set, []v1.Violation, error) {
	opts := a.manifestOptions(ctx)
	opts.Fields, opts.Layout = places, true
	set, err := manifest.Load(ctx, paths, opts)
	if err != nil {
		return nil, nil, usageError{err}
	}
	elsewhere, err := a.intoNamespace(set.Objects)
	if err != nil {
		return nil, nil, err
	}
	idle := mcp.NewUpstreams(nil, mcp.Options{}) // a check reaches nothing
	defer a.closing(idle)
	here := make(map[v1.Key]bool, len(set.Objects))
	for _, o := range set.Objects {
		here[o.Head().Key()] = true
	}
	all := slices.Clone(set.Objects)
	for _, o := range beside {
		if !here[o.Head().Key()] {
			all = append(all, o)
		}
	}
	reg, err := registry.New(all, registry.Options{Executors: executors.All(executors.Options{Env: a.env, Upstream: idle})})
	if err != nil {
		return nil, nil, err
	}
	defer a.closing(reg)
	violations := slices.Concat(set.Violations, elsewhere, reg.Check(ctx))
	violations = append(violations, inspectTexts(set.Objects)...)
	manifest.SortViolations(violations)
	return set, violations, ctx.Err()
}

// inspectTexts warns of what the texts that a model reads hide or order, and of secrets that are written out.
func inspectTexts(objects []v1.Object) []v1.Violation {
	var fs []v1.Violation
	for _, o := range objects {
		for _, f := range slices.Concat(inspect.Secrets(o), inspect.Object(o)) {
			f.Source = o.Head().Field(f.Path)
			fs = append(fs, f)
		}
	}
	return fs
}

// intoNamespace puts objects that name no namespace into the one given with -n, as
// kubectl does. An object that names another one is a violation.
func (a *app) intoNamespace(objects []v1.Object) (violations []v1.Violation, err error) {
	if a.namespace == "" {
		return nil, nil
	}
	if !v1.IsName(a.namespace) || strings.Contains(a.namespace, ".") {
		return nil, usagef("-n %q is not a legal name: expected lower-case letters, digits, '-' and '_'", a.namespace)
	}
	for _, o := range objects {
		h := o.Head()
		switch h.Metadata.Namespace {
		case a.namespace:
		case "":
			h.Metadata.Namespace = a.namespace
		default:
			violations = append(violations, v1.Violation{
				Path: "/metadata/namespace", Source: h.Field("/metadata/namespace"), Expected: a.namespace, Got: h.Metadata.Namespace,
				Message: fmt.Sprintf("%s is in namespace %q, and -n names %q: leave one of them out", objectName(h.Key()), h.Metadata.Namespace, a.namespace),
			})
		}
	}
	return violations, nil
}

// setName names a set by its paths.
func setName(files []string) (string, error) {
	var abs []string
	for _, f := range files {
		if f != "-" {
			p, err := filepath.Abs(f)
			if err != nil {
				return "", err
			}
			f = p
		}
		abs = append(abs, f)
	}
	slices.Sort(abs)
	return strings.Join(slices.Compact(abs), "\n"), nil
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
