package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/agent/scripted"
	"toolctl.dev/toolctl/pkg/registry"
)

const hopsOfBench = 20

// benchScript returns a script that makes one call at each hop except the last, each with other arguments.
func benchScript() []v1.ModelReply {
	var all []v1.ModelReply
	for i := range hopsOfBench - 1 {
		args := json.RawMessage(fmt.Sprintf(`{"city":"city-%d"}`, i))
		all = append(all, v1.ModelReply{ToolCalls: []v1.ModelToolCall{{Tool: "get-weather", Args: args}}})
	}
	return append(all, v1.ModelReply{Text: "done"})
}

// BenchmarkRun measures a run of 20 hops with one call each; hop-ns is the time of one hop. The cost of the loop
// itself, which should stay below 50 µs, is the difference to BenchmarkRunFloor.
func BenchmarkRun(b *testing.B) {
	w := newWorld(b, tools, registry.Options{})
	p, script, vars := w.prompt("advice"), benchScript(), json.RawMessage(`{"city":"Oslo"}`)
	for b.Loop() {
		res, err := agent.Run(context.Background(), w.reg, p, vars, agent.Options{Model: scripted.New(script, scripted.Options{}), MaxHops: hopsOfBench})
		if err != nil || len(res.Hops) != hopsOfBench {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/hopsOfBench, "hop-ns")
}

// BenchmarkRunFloor measures the unavoidable part: the model's replies and the calls through the registry.
func BenchmarkRunFloor(b *testing.B) {
	w := newWorld(b, tools, registry.Options{})
	script := benchScript()
	for b.Loop() {
		m := scripted.New(script, scripted.Options{})
		for range hopsOfBench {
			reply, err := m.Generate(context.Background(), agent.Request{}, nil)
			if err != nil {
				b.Fatal(err)
			}
			for _, c := range reply.Message.ToolCalls {
				out := w.reg.ExecuteAll(context.Background(), []v1.Call{{Tool: c.Name, Args: json.RawMessage(c.Args)}})
				if out[0].Err != nil {
					b.Fatal(out[0].Err)
				}
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/hopsOfBench, "hop-ns")
}
