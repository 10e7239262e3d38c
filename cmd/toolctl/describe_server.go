package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/inspect"
	"toolctl.dev/toolctl/pkg/mcp"
)

// describeState prints what is known of an MCP server: what it says of itself, what
// it offers, and the end of its stderr.
func (a *app) describeState(s mcp.ServerState) error {
	line := func(key, value string) { fmt.Fprintf(a.out, "%-13s%s\n", key+":", clip.Line(inspect.Show(value))) }
	line("Status", statusText(s))
	if s.Reason != "" {
		line("Reason", reasonText(s))
	}
	line("Transport", s.Transport)
	line("Protocol", cmp.Or(s.ProtocolVersion, "-"))
	line("Server", cmp.Or(strings.TrimSpace(s.ServerName+" "+s.ServerVersion), "-"))
	line("Latency", latencyText(s))
	if s.PID != 0 {
		line("PID", fmt.Sprint(s.PID))
	}
	if !s.Ready && !s.LastSeen.IsZero() {
		line("Last seen", s.LastSeen.UTC().Format(time.RFC3339))
	}
	a.printBlock("Instructions", s.Instructions)
	if len(s.Warnings) > 0 {
		a.printBlock("Warnings", strings.Join(s.Warnings, "\n"))
	}
	if len(s.Tools) > 0 {
		fmt.Fprintln(a.out, "Tools:")
		t := newTable(a.out, "  NAME", "READY", "DESCRIPTION")
		for _, tool := range s.Tools {
			ready, text := "True", tool.Tool.Spec.Description
			if tool.Problem != "" {
				ready, text = "False", tool.Problem
			}
			t.row("  "+inspect.Show(tool.Tool.Metadata.Name), ready, clip.Words(inspect.Show(text), 80))
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
	a.printBlock("Prompts", strings.Join(prompts, "\n"))
	a.printBlock("Resources", strings.Join(resources, "\n"))
	a.printBlock("Stderr", strings.TrimRight(string(s.Stderr), "\n"))
	for _, tool := range s.Tools {
		a.warnTexts(tool.Tool)
	}
	return nil
}

// printBlock prints foreign text of several lines under a title; nothing when it is empty.
func (a *app) printBlock(title, text string) {
	if text == "" {
		return
	}
	fmt.Fprintln(a.out, title+":")
	for l := range strings.SplitSeq(text, "\n") {
		fmt.Fprintln(a.out, "  "+clip.Line(inspect.Show(l)))
	}
}
