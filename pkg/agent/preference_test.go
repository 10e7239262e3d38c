package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/registry"
)

// preferred returns a set of tools, one for each preference, and a prompt that names them all.
func preferred(preferences ...string) string {
	var b strings.Builder
	for i, p := range preferences {
		fmt.Fprintf(&b, "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: t%d}\nspec: {description: A tool, input_schema: {type: object}, mock_result: 1, preference: %s}\n---\n", i, p)
	}
	return b.String() + "apiVersion: toolctl.dev/v1\nkind: Prompt\nmetadata: {name: all}\nspec: {template: Go., tools: [\"t*\"]}\n"
}

// asking is a model that records the offered tools.
type asking []string

func (a *asking) Generate(_ context.Context, req agent.Request, _ func(agent.Delta)) (agent.Reply, error) {
	for _, t := range req.Tools {
		*a = append(*a, t.Name)
	}
	return agent.Reply{Message: agent.Message{Role: agent.RoleAssistant, Text: "Done."}, Stop: agent.StopEnd}, nil
}

func TestPreference(t *testing.T) {
	tests := []struct {
		name  string
		tools string
		max   int
		sees  string
		warns string
	}{
		{"by name", preferred("{}", "{enabled: true}", "{weight: 0}"), 0, "t0 t1 t2", ""},
		{"the heaviest first", preferred("{}", "{weight: 5}", "{weight: -1}", "{weight: 5}"), 0, "t1 t3 t0 t2", ""},
		{"one is off", preferred("{}", "{enabled: false, weight: 9}"), 0, "t0", ""},
		{"too many", preferred("{}", "{weight: 1}", "{weight: 2}"), 2, "t2 t1", "3 tools match the prompt, and the model is offered the first 2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, tt.tools, registry.Options{})
			var asked asking
			res, err := w.run("all", `{}`, "", agent.Options{MaxTools: tt.max, Model: &asked})
			if err != nil || strings.Join(asked, " ") != tt.sees {
				t.Errorf("offered %v, %v, want %s", []string(asked), err, tt.sees)
			}
			if all := strings.Join(res.Warnings, "\n"); !strings.Contains(all, tt.warns) || tt.warns == "" && all != "" {
				t.Errorf("warnings %q", all)
			}
		})
	}
}
