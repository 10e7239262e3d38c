package main

import (
	"fmt"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/inspect"
	"toolctl.dev/toolctl/pkg/mcp"
)

// warnStates says on stderr which servers are not ready, and what of their answers
// is left out or suspicious.
func (a *app) warnStates(states []mcp.ServerState) {
	for _, s := range states {
		if !s.Ready {
			fmt.Fprintf(a.err, "warning: %s is not ready: %s\n", objectName(s.Key), reasonText(s))
		}
		for _, text := range s.Warnings {
			fmt.Fprintf(a.err, "warning: %s: %s\n", objectName(s.Key), inspect.Show(text))
		}
		for _, t := range s.Tools {
			a.warnTexts(t.Tool)
		}
	}
}

// warnOffered warns of what is wrong with the tools that a server offers; becomes says what happens to those
// that have a problem.
func (a *app) warnOffered(becomes string) func([]mcp.DiscoveredTool) {
	return func(tools []mcp.DiscoveredTool) {
		for _, t := range tools {
			if t.Problem != "" {
				fmt.Fprintf(a.err, "warning: tool %q %s: %s\n", inspect.Show(t.Remote), becomes, inspect.Show(t.Problem))
				continue
			}
			a.warnTexts(t.Tool)
		}
	}
}

// reasonText is why a server is not ready, where its name stands beside it.
func reasonText(s mcp.ServerState) string {
	return clip.Line(inspect.Show(s.Why()))
}

// warnTexts warns of what the texts of a tool hide or order.
func (a *app) warnTexts(t *v1.Tool) {
	for _, f := range inspect.Tool(t) {
		fmt.Fprintf(a.err, "warning: %s: %s: %s\n", objectName(t.Key()), v1.FieldPath(f.Path), f.Message)
	}
}
