package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/inspect"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/prompt"
	"toolctl.dev/toolctl/pkg/rollout"
)

func newDescribeCmd(a *app) *cobra.Command {
	var verb action.Describe
	cmd := &cobra.Command{
		Use:   "describe KIND/NAME... | KIND",
		Short: "Show objects with their state and the rules that apply to them",
		Long: `Show one object, or all objects of a kind, in a readable form: its file, whether it is ready
and why not, and its spec. For a tool, describe also shows the policies that govern it; for a
prompt, its variables and tools; for a toolset, its tools and prompts; for an MCP server, its
capabilities and the last lines of its stderr. Values of environment variables, and anything else
that looks like a secret, are never shown.`,
		Example: `  toolctl describe tool/get-weather
  toolctl describe -f manifests/ toolpolicy careful
  toolctl describe mcpserver files`,
		ValidArgsFunction: a.completeResources,
		RunE: func(cmd *cobra.Command, args []string) error {
			rs, err := requests(args)
			if err != nil {
				return a.meant(cmd, err)
			}
			byLabels := cmd.Flags().Changed("selector")
			switch {
			case byLabels && (len(rs) == 0 || hasNames(rs)):
				return usagef("-l selects objects of one kind: 'toolctl describe tools -l LABELS'")
			case len(rs) == 0:
				return usagef("expected KIND/NAME or KIND NAME, or KIND for all of that kind")
			}
			verb.Config, verb.Requests = a.reaching(cmd.Context()), rs
			all, err := verb.Run(cmd.Context())
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
	bindSelector(cmd.Flags(), &verb.Selector, "objects")
	cmd.Flags().BoolVar(&verb.Offline, "no-discover", false, "do not query MCP servers")
	a.bindNetwork(cmd.Flags(), "")
	return cmd
}

// fields prints properties as "Key: value" lines, and blocks of lines below a title.
type fields struct{ w io.Writer }

func (f fields) line(key, value string) {
	fmt.Fprintf(f.w, "%-13s%s\n", key+":", clip.Line(cmp.Or(inspect.Show(value), "-")))
}

// some is like line, but prints nothing if the value is empty.
func (f fields) some(key, value string) {
	if value != "" {
		f.line(key, value)
	}
}

// block prints lines below a title, and nothing without any text.
func (f fields) block(title, text string) {
	if text == "" {
		return
	}
	fmt.Fprintln(f.w, title+":")
	for l := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		fmt.Fprintln(f.w, strings.TrimRight("  "+clip.Line(inspect.Show(l)), " "))
	}
}

// describe prints an object.
func (a *app) describe(d *action.Described) error {
	f, it := fields{a.out}, d.Item
	h := it.Object.Head()
	f.line("Kind", h.Kind)
	f.line("Namespace", h.Namespace())
	f.line("Name", h.Metadata.Name)
	f.line("Labels", strings.ReplaceAll(labelText(h.Metadata.Labels), ",", ", "))
	if len(h.Metadata.Annotations) > 0 {
		f.line("Annotations", strings.ReplaceAll(labelText(h.Metadata.Annotations), ",", ", "))
	}
	f.some("Source", sourceText(it))
	if rec := d.Record; rec != nil {
		f.line("Version", fmt.Sprintf("%d (generation %d)", rec.ResourceVersion, rec.Generation))
		f.line("Applied", clock(rec.Updated))
	}
	f.line("Ready", readyText(it.Ready))
	for _, reason := range it.Reasons {
		fmt.Fprintf(a.out, "  - %s\n", reason)
	}
	if t := it.Tool(); t != nil {
		f.line("Executor", t.ExecutorName())
		if o := d.Override; o != nil {
			f.line("Override", fmt.Sprintf("version %d by %s, %s", o.Version, cmp.Or(o.Author, "an unknown author"), o.Time.Format(time.RFC3339)))
		}
		if it.Ready {
			f.line("Policies", strings.Join(d.Policies, ", "))
		}
	}
	if d.Prompt != nil {
		f.line("Variables", variablesText(d.Prompt))
	}
	if d.Prompt != nil || h.Kind == v1.KindToolset {
		f.line("Tools", strings.Join(d.Tools, ", "))
	}
	if h.Kind == v1.KindToolset {
		f.line("Prompts", strings.Join(d.Prompts, ", "))
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
	fmt.Fprintln(a.out, "Spec:")
	for l := range strings.Lines(string(spec)) {
		fmt.Fprintln(a.out, strings.TrimRight("  "+l, " \n"))
	}
	if s := d.Status; s != nil {
		if s.Set != "" {
			f.line("Set", rollout.Name(s.Set))
			f.line("Revision", strconv.FormatInt(s.Revision, 10))
			f.line("Commit", s.Commit)
		}
		fmt.Fprintln(a.out, "Conditions:")
		t := newTable(a.out, "  TYPE", "STATUS", "SINCE", "REASON", "MESSAGE")
		for _, c := range s.Conditions {
			t.row("  "+c.Type, c.Status, clock(c.LastTransitionTime), c.Reason, clip.Words(inspect.Show(c.Message), 160))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if d.State != nil {
		return a.describeState(d.State)
	}
	return nil
}

// variablesText lists the variables of a prompt: city (required), days (default 3).
func variablesText(p *prompt.Prompt) string {
	if !p.TakesObject() {
		return p.Input()
	}
	var all []string
	for _, a := range p.Arguments() {
		text := a.Name
		switch {
		case a.Required:
			text += " (required)"
		case len(a.Default) > 0:
			text += fmt.Sprintf(" (default %s)", clip.Words(string(a.Default), 40))
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// describeState prints the state of an MCP server: its name and version, its tools, prompts and resources, and
// the end of its stderr.
func (a *app) describeState(s *mcp.ServerState) error {
	f := fields{a.out}
	f.line("Status", statusText(s))
	if s.Reason != "" {
		f.line("Reason", s.Why())
	}
	f.line("Transport", s.Transport)
	f.line("Protocol", s.ProtocolVersion)
	f.line("Server", strings.TrimSpace(s.ServerName+" "+s.ServerVersion))
	f.line("Latency", latencyText(s))
	if s.PID != 0 {
		f.line("PID", strconv.Itoa(s.PID))
	}
	if !s.Ready && !s.LastSeen.IsZero() {
		f.line("Last seen", clock(s.LastSeen))
	}
	f.block("Instructions", s.Instructions)
	f.block("Warnings", strings.Join(s.Warnings, "\n"))
	if len(s.Tools) > 0 {
		fmt.Fprintln(a.out, "Tools:")
		t := newTable(a.out, "  NAME", "READY", "DESCRIPTION")
		for _, tool := range s.Tools {
			text := cmp.Or(tool.Problem, tool.Tool.Spec.Description)
			t.row("  "+inspect.Show(tool.Tool.Metadata.Name), readyText(tool.Problem == ""), clip.Words(inspect.Show(text), 80))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	var prompts, resources []string
	for _, p := range s.Prompts {
		prompts = append(prompts, s.Key.Name+"__"+p.Name)
	}
	for _, r := range s.Resources {
		resources = append(resources, r.URI)
	}
	for _, r := range s.ResourceTemplates {
		resources = append(resources, r.URITemplate)
	}
	f.block("Prompts", strings.Join(prompts, "\n"))
	f.block("Resources", strings.Join(resources, "\n"))
	f.block("Stderr", string(s.Stderr))
	for _, tool := range s.Tools {
		a.warnTexts(tool.Tool)
	}
	return nil
}
