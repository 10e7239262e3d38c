package main

import (
	"fmt"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/inspect"
	"toolctl.dev/toolctl/pkg/mcp"
)

// warnStates warns of servers that are not ready, and of answers that toolctl leaves out or that are suspicious.
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

// reasonText says why a server is not ready, for output that names the server already.
func reasonText(s mcp.ServerState) string {
	return clip.Line(inspect.Show(s.Why()))
}

// warnTexts warns of hidden characters and instructions in the texts of a tool.
func (a *app) warnTexts(t *v1.Tool) {
	for _, f := range inspect.Tool(t) {
		fmt.Fprintf(a.err, "warning: %s: %s: %s\n", objectName(t.Key()), v1.FieldPath(f.Path), f.Message)
	}
}
