package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/manifest"
)

func newDescribeCmd(a *app) *cobra.Command {
	var offline bool
	cmd := &cobra.Command{
		Use:   "describe KIND/NAME... | KIND",
		Short: "Show objects with their state and the rules that apply to them",
		Long: `Show one object, or all objects of a kind, in a readable form: its file, whether it is ready
and why not, and its spec. For a tool, describe also shows the policies that govern it; for a
prompt, its variables and tools; for an MCP server, its capabilities and the last lines of its
stderr. Values of environment variables, and anything else that looks like a secret, are
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
			c, err := a.reaching(cmd.Context())
			if err != nil {
				return err
			}
			all, err := (&action.Describe{Config: c, Requests: actionRequests(rs), Selector: a.selector, Offline: offline, Opened: a.warnViolations, Found: a.warnTexts}).Run(cmd.Context())
			for i := range all {
				if i > 0 {
					fmt.Fprintln(a.out)
				}
				if perr := a.describe(&all[i]); perr != nil {
					return perr
				}
			}
			return err
		},
	}
	a.bindSelector(cmd.Flags(), "objects")
	cmd.Flags().BoolVar(&offline, "no-discover", false, "do not query MCP servers")
	a.bindNetwork(cmd.Flags(), "")
	return cmd
}

// describe shows an object.
func (a *app) describe(d *action.Described) error {
	out, it, rec := a.out, d.Item, d.Record
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
		if o := d.Override; o != nil {
			line("Override", fmt.Sprintf("version %d by %s, %s", o.Version, cmp.Or(o.Author, "nobody known"), o.Time.Format(time.RFC3339)))
		}
		if it.Ready {
			line("Policies", cmp.Or(strings.Join(d.Policies, ", "), "-"))
		}
	}
	if d.Prompt != nil {
		line("Variables", variablesText(d.Prompt))
		line("Tools", cmp.Or(strings.Join(d.Tools, ", "), "-"))
	}
	var body struct {
		Spec json.RawMessage `json:"spec"`
	}
	raw, err := json.Marshal(d.Shown)
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
	if d.Status != nil {
		if err := a.describeStatus(d.Status); err != nil {
			return err
		}
	}
	if d.State != nil {
		return a.describeState(*d.State)
	}
	return nil
}
