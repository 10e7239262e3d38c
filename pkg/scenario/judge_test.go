package scenario_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/scenario"
)

// mentions is a judge that searches its material for the last line of its criteria.
type mentions struct{}

func (mentions) Generate(_ context.Context, req agent.Request, _ func(agent.Delta)) (agent.Reply, error) {
	want := req.System[strings.LastIndex(req.System, "\n")+1:]
	text := fmt.Sprintf(`{"passed": %v, "score": 0.8, "reasoning": "It looks for %s."}`, strings.Contains(req.Messages[0].Text, want), want)
	return agent.Reply{Message: agent.Message{Role: agent.RoleAssistant, Text: text}}, nil
}

// silent is a model that does not reply.
type silent struct{ asked int }

func (m *silent) Generate(ctx context.Context, _ agent.Request, _ func(agent.Delta)) (agent.Reply, error) {
	m.asked++
	<-ctx.Done()
	return agent.Reply{}, ctx.Err()
}

// TestJudgeIsBounded checks the limits on the time of a judge and on the size of its material.
func TestJudgeIsBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		text, want string
		asked      int
	}{
		"time": {"Hello", "no verdict: the judge did not reply within 2m0s", 1},
		"size": {strings.Repeat("x", 300_000), "no verdict: the material for the judge has 300019 bytes, and at most 262144 are allowed", 0},
	} {
		t.Run(name, func(t *testing.T) {
			objects, scenarios := decode(t, `
apiVersion: toolctl.dev/v1
kind: Scenario
metadata: {name: s}
spec:
  turns: [{user: Hi, model: [{text: Hello}], assertions: [{type: llm_judge, params: {criteria: polite}}]}]
`)
			scenarios[0].Spec.Turns[0].Model = []v1.ModelReply{{Text: tc.text}}
			synctest.Test(t, func(t *testing.T) {
				model, o := &silent{}, options()
				o.Judge = &scenario.Judge{Model: model}
				res := runAll(t, objects, scenarios, o).Scenarios[0]
				if len(res.Failures) != 1 || res.Failures[0].Got != tc.want || model.asked != tc.asked {
					t.Errorf("asked %d times: %s, %v", model.asked, res.Status, res.Failures)
				}
			})
		})
	}
}
