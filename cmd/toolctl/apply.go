package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/internal/tty"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/plan"
	"toolctl.dev/toolctl/pkg/store"
)

// bindSet adds the flags of apply and diff that choose the set, and the objects of the files that belong to it.
func (a *app) bindSet(cmd *cobra.Command, s *action.Selection) {
	f := cmd.Flags()
	f.BoolVar(&s.Prune, "prune", false, "delete objects of this set that the files no longer contain")
	f.BoolVar(&s.AllowEmpty, "allow-empty", false, "allow --prune to delete the whole set when no manifests are found")
	bindSelector(f, &s.Selector, "objects")
	f.StringVar(&s.Set, "set", "", "name of the set (default: the paths given with -f)")
	f.BoolVar(&s.TakeOver, "take-over", false, "move objects from other sets into this set")
	_ = cmd.RegisterFlagCompletionFunc("set", a.fromStore(noFiles, namedSets))
}

type applyOptions struct {
	*app
	action.Apply
	mode     dryRunMode
	plan     string
	wait     bool
	patience time.Duration
}

func newApplyCmd(a *app) *cobra.Command {
	o := &applyOptions{app: a}
	cmd := &cobra.Command{
		Use:        "apply (-f PATH | --plan FILE)",
		Short:      "Apply manifests to the store",
		SuggestFor: []string{"create", "replace"},
		Long: `Apply manifests to the store in one transaction. If a manifest has an error, nothing
changes. Each object is reported as created, configured or unchanged.

--prune deletes objects from earlier applies of this set that the files no longer contain,
but keeps objects whose files are now skipped because they are not toolctl manifests. --set
names the set; by default the paths given with -f are its name. With --set, apply refuses
objects that belong to another set; without --set, they stay in their set. --take-over
moves them. apply refuses an empty or missing source unless --allow-empty allows it to
delete the whole set. An object with the annotation toolctl.dev/prune: disabled is
never pruned and stays in its set.

--plan applies exactly the changes listed by 'toolctl diff -o plan'. If a manifest or an
object in the plan has changed since, apply names each of them and changes nothing.

The limit of a policy keeps its count as long as its name (or its tools, if it has no
name), per and by stay the same. toolctl warns when an edit discards a count.

Each apply creates a revision of its set, with the Git commit if the files are in a Git
work tree: see 'toolctl rollout'.

With -n, objects without a namespace go into that namespace.

--dry-run compares the files with the store and prints the changes. --dry-run=client needs
no store: it checks the files alone and lists each object as created.

Output formats (-o): table (one line per object), name, json.`,
		Annotations: formats("table", "name", "json"),
		Example: `  toolctl apply -f manifests/
  toolctl apply -f manifests/ --prune --dry-run
  toolctl diff -f manifests/ -o plan > plan.json; toolctl apply --plan plan.json
  cat tool.yaml | toolctl apply -f -`,
		Args: filesOnly,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	f := cmd.Flags()
	a.bindSet(cmd, &o.Selection)
	bindDryRun(f, &o.mode, "print the changes without applying them: server compares with the store, client reads only the files")
	f.StringVar(&o.plan, "plan", "", "apply this plan of 'toolctl diff -o plan', or - for stdin; -f gives the present location of its manifests")
	f.BoolVar(&o.wait, "wait", false, "wait until every MCP server of the set is ready")
	f.DurationVar(&o.patience, "timeout", 30*time.Second, "maximum time that --wait waits")
	f.IntVar(&o.History, "revision-history-limit", store.DefaultHistory, "number of earlier revisions of the set to keep")
	a.bindNetwork(f, "with --wait: ")
	return cmd
}

// filesOnly refuses a path without -f.
func filesOnly(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usagef("unexpected argument %q: name files with -f, as in -f %s", args[0], args[0])
}

func (o *applyOptions) run(ctx context.Context) error {
	if o.wait && o.patience <= 0 {
		return usagef("--timeout %s: expected a time above 0", o.patience)
	}
	o.Config, o.DryRun = o.config(ctx), action.DryRun(o.mode)
	if o.plan != "" {
		var err error
		if o.Plan, err = o.readPlan(ctx); err != nil {
			return err
		}
	}
	done, err := o.Run(ctx)
	if stale := new(plan.StaleError); errors.As(err, &stale) {
		return statusError{exitInvalid, stale.Error()}
	}
	if err != nil {
		return err
	}
	o.printWarnings(done.Warnings)
	o.printKept(done.Kept)
	for _, set := range slices.Sorted(maps.Keys(done.Left)) {
		fmt.Fprintf(o.err, "note: %s in the set %s, and this apply creates no revision of it: apply that set as a whole, or name it with --set\n", stay(len(done.Left[set])), shownSet(set))
	}
	if err := o.printChanges(done.Changes, done.DryRun); err != nil || !o.wait || done.DryRun {
		return err
	}
	return o.waitServers(ctx, done.Servers)
}

// waitServers waits until MCP servers are ready.
func (o *applyOptions) waitServers(ctx context.Context, servers []v1.Key) error {
	if len(servers) == 0 {
		return nil
	}
	c := o.reaching(ctx)
	c.Files = nil // the objects are now in the store
	return (&action.Wait{Config: c, Keys: servers, Timeout: o.patience, Met: func(k v1.Key) { fmt.Fprintf(o.err, "%s ready\n", objectName(k)) }}).Run(ctx)
}

func (o *applyOptions) readPlan(ctx context.Context) (*plan.Plan, error) {
	in := tty.Stdin(ctx, o.in)
	if o.plan != "-" {
		f, err := regular.Open(o.plan)
		if err != nil {
			return nil, usagef("--plan %s: %w", o.plan, regular.Reason(err))
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

func (a *app) printWarnings(warnings []v1.Violation) {
	for _, v := range warnings {
		fmt.Fprintln(a.err, v)
	}
}

// printKept names the objects that were not pruned because of their annotation.
func (a *app) printKept(keys []v1.Key) {
	for _, k := range keys {
		fmt.Fprintf(a.err, "%s stays in the store and in the set: it has the annotation %s: disabled\n", objectName(k), plan.PruneAnnotation)
	}
}

// change is the change of one object, as -o json prints it.
type change struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Action    string `json:"action"`
	DryRun    bool   `json:"dry_run,omitempty"`
	// TakenFrom is the set that the object belonged to before.
	TakenFrom string `json:"taken_from,omitempty"`
	// Abandoned are the counts of a policy that the change discards.
	Abandoned []string `json:"abandoned_counts,omitempty"`
}

func stay(n int) string {
	if n == 1 {
		return "1 object stays"
	}
	return count(n, "object") + " stay"
}

// shownSet returns the name of a set for messages. A set without a given name is named by its paths, one per
// line.
func shownSet(set string) string { return clip.Line(quoted(strings.ReplaceAll(set, "\n", ", "))) }

// printChanges prints a line for each object, its name, or JSON, and warns of discarded counts.
func (a *app) printChanges(changes []action.Change, dryRun bool) error {
	all := make([]change, len(changes))
	for i, c := range changes {
		all[i] = change{c.Key.Kind, c.Key.Namespace, c.Key.Name, string(c.Action), dryRun, c.TakenFrom, c.Abandoned}
		for _, text := range c.Abandoned {
			fmt.Fprintf(a.err, "warning: %s: %s\n", objectName(c.Key), text)
		}
	}
	for _, c := range changes {
		name, suffix := objectName(c.Key), ""
		if c.TakenFrom != "" {
			suffix = fmt.Sprintf(", taken over from set %q", c.TakenFrom)
		}
		if dryRun {
			suffix += " (dry run)"
		}
		switch in := c.Key.Namespace; {
		case a.format() == "name":
			fmt.Fprintln(a.out, name)
		case a.format() == "json":
		case in == v1.DefaultNamespace:
			fmt.Fprintf(a.out, "%s %s%s\n", name, c.Action, suffix)
		default:
			fmt.Fprintf(a.out, "%s in namespace %s %s%s\n", name, in, c.Action, suffix)
		}
	}
	if a.format() == "json" {
		return printJSON(a.out, all)
	}
	return nil
}
