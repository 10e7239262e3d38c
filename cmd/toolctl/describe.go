package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/redact"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/prompt"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/store"
)

func newDescribeCmd(a *app) *cobra.Command {
	var offline bool
	cmd := &cobra.Command{
		Use:   "describe KIND/NAME... | KIND",
		Short: "Show objects, their state and what applies to them",
		Long: `Show an object for people, or all of a kind: where it stands, whether it is ready and why not,
its spec, for a tool the policies that govern it, for a prompt its variables and the
tools that it names, and for an MCP server what it says and offers and the end of
its stderr. Values of environment variables, and what else looks like a secret, are
never shown.`,
		Example: `  toolctl describe tool/get-weather
  toolctl describe -f manifests/ toolpolicy careful
  toolctl describe mcpserver files`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeResources,
		RunE: func(cmd *cobra.Command, args []string) error {
			rs, err := requests(args)
			if err != nil {
				return a.meant(cmd, err)
			}
			byLabels := cmd.Flags().Changed("selector")
			switch {
			case byLabels && (len(rs) == 0 || hasNames(rs)):
				return usagef("-l chooses among the objects of a kind: 'toolctl describe tools -l LABELS'")
			case len(rs) == 0:
				return usagef("expected KIND/NAME or KIND NAME, or KIND for all of that kind")
			}
			has, err := a.selected()
			if err != nil {
				return err
			}
			w, err := a.open(cmd.Context())
			if err != nil {
				return err
			}
			defer a.closing(w)
			w.Registry.Check(cmd.Context())
			a.warnViolations(w)
			first := true
			for _, r := range rs {
				if len(r.names) == 0 {
					if r.names, err = namesOf(w.Registry, registry.Query{Kind: r.kind, Namespace: a.namespace}, has); err != nil {
						return err
					}
				}
				for _, name := range r.names {
					if !first {
						fmt.Fprintln(a.out)
					}
					first = false
					if err := a.describeNamed(cmd.Context(), w, r.kind, name, offline); err != nil {
						return err
					}
				}
			}
			return nil
		},
	}
	a.bindSelector(cmd.Flags(), "objects")
	cmd.Flags().BoolVar(&offline, "no-discover", false, "do not ask MCP servers what they offer")
	a.bindNetwork(cmd.Flags(), "")
	return cmd
}

// namesOf returns the names of the objects that have the labels, each with its namespace.
func namesOf(reg *registry.Registry, q registry.Query, has func(v1.Object) bool) ([]string, error) {
	page, err := reg.List(q)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, it := range page.Items {
		if h := it.Object.Head(); has(it.Object) {
			names = append(names, h.Namespace()+"/"+h.Metadata.Name)
		}
	}
	return names, nil
}

// describeNamed describes the object that a name means; a server is asked, unless offline.
func (a *app) describeNamed(ctx context.Context, w *action.Workspace, kind, name string, offline bool) error {
	if kind == v1.KindTool && !offline {
		a.prepareTool(ctx, w, name)
	}
	it, err := w.Registry.Get(kind, a.namespace, name)
	if err != nil {
		return err
	}
	var rec *store.Record
	if !w.OfFiles && it.Server == (v1.Key{}) {
		r, err := w.Store.Get(ctx, it.Object.Head().Key())
		if err != nil {
			return err
		}
		rec = &r
	}
	override, err := a.overrideOf(ctx, w, it)
	if err != nil {
		return err
	}
	if kind != v1.KindMCPServer || offline || len(it.Reasons) > 0 {
		if err := describe(ctx, a.out, w.Registry, it, rec, override); err != nil {
			return err
		}
		return a.describeStatus(ctx, w, it, nil)
	}
	states := w.Discover(ctx, it.Object.Head().Key())
	if it, err = w.Registry.Get(kind, a.namespace, name); err != nil {
		return err
	}
	if err := describe(ctx, a.out, w.Registry, it, rec, ""); err != nil {
		return err
	}
	if err := a.describeStatus(ctx, w, it, states); err != nil {
		return err
	}
	return a.describeState(states[0])
}

// overrideOf says which override gives a tool its description; "" when none does.
func (a *app) overrideOf(ctx context.Context, w *action.Workspace, it registry.Item) (string, error) {
	t := it.Tool()
	if t == nil || w.Store == nil {
		return "", nil
	}
	all, err := w.Store.Overrides(ctx)
	if err != nil {
		return "", err
	}
	for _, o := range all {
		if o.Namespace == t.Namespace() && o.Tool == t.Metadata.Name {
			return fmt.Sprintf("version %d by %s, %s", o.Version, cmp.Or(o.Author, "nobody known"), o.Time.Format(time.RFC3339)), nil
		}
	}
	return "", nil
}

// describe shows an object; override says what its description comes from, if not from it.
func describe(ctx context.Context, out io.Writer, reg *registry.Registry, it registry.Item, rec *store.Record, override string) error {
	h := it.Object.Head()
	line := func(key, value string) { fmt.Fprintf(out, "%-13s%s\n", key+":", clip.Line(value)) }
	line("Kind", h.Kind)
	line("Namespace", h.Namespace())
	line("Name", h.Metadata.Name)
	line("Labels", strings.ReplaceAll(labelText(h.Metadata.Labels), ",", ", "))
	if len(h.Metadata.Annotations) > 0 {
		line("Annotations", strings.ReplaceAll(labelText(h.Metadata.Annotations), ",", ", "))
	}
	if it.Server != (v1.Key{}) || !h.Source.IsZero() {
		line("Source", sourceText(it))
	}
	if rec != nil {
		line("Version", fmt.Sprintf("%d (generation %d)", rec.ResourceVersion, rec.Generation))
		line("Applied", rec.Updated.UTC().Format(time.RFC3339))
	}
	line("Ready", readyText(it))
	for _, f := range it.Reasons {
		fmt.Fprintf(out, "  - %s\n", f)
	}
	if t := it.Tool(); t != nil {
		line("Executor", t.ExecutorName())
		if override != "" {
			line("Override", override)
		}
		if it.Ready {
			ex, err := reg.ExplainPolicy(ctx, v1.Call{Tool: h.Namespace() + "/" + h.Metadata.Name})
			if err != nil {
				return err
			}
			governs := ex.Matched
			for _, u := range ex.Unmatched {
				if len(u.Principals) > 0 {
					governs = append(governs, fmt.Sprintf("%s (for %s)", u.Policy, strings.Join(u.Principals, ", ")))
				}
			}
			line("Policies", cmp.Or(strings.Join(governs, ", "), "-"))
		}
	}
	if m, ok := it.Object.(*v1.Prompt); ok && it.Ready {
		if p, err := prompt.Compile(m); err == nil {
			line("Variables", variablesText(p))
		}
		line("Tools", toolsText(reg, m))
	}
	var body struct {
		Spec json.RawMessage `json:"spec"`
	}
	shown, err := redact.Manifest(it.Object)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(shown)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		return err
	}
	spec, err := manifest.MarshalYAML(body.Spec)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "Spec:")
	for l := range strings.Lines(string(spec)) {
		fmt.Fprintln(out, strings.TrimRight("  "+l, " \n"))
	}
	return nil
}
