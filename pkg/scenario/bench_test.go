package scenario_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"toolctl.dev/toolctl/pkg/scenario"
)

// many returns n scenarios of 5 mocked calls each, some with random faults.
func many(n int) string {
	var b strings.Builder
	b.WriteString(weatherTool)
	for i := range n {
		fmt.Fprintf(&b, `apiVersion: toolctl.dev/v1
kind: Scenario
metadata: {name: s%d}
spec:
  seed: 7
  policies: []
  mocks: {pay: {responses: [{when: {amount: {gt: 10}}, fault: {kind: status, status: 503, probability: 0.3}, result: {paid: %d}}]}}
  turns:
  - calls:
    - {tool: get-weather, args: {location: Oslo}, expect: {result: {temperature: {gt: 20}}}}
    - {tool: pay, args: {amount: %d}}
    - {tool: pay, args: {amount: 12}}
  - calls:
    - {tool: get-weather, args: {location: Bergen}, expect: {result: {location: Bergen}}}
    - {tool: get-weather, args: {}, expect: {error: {type: args_invalid}}}
  assertions:
  - {type: tools_called, params: {tools: [get-weather]}}
---
`, i, i, i+11)
	}
	return b.String()
}

// BenchmarkRun runs 1,000 scenarios of 5 calls. The goal is less than 2 s on 2 processors.
func BenchmarkRun(b *testing.B) {
	objects, scenarios := decode(b, many(1000))
	b.ReportAllocs()
	for b.Loop() {
		runAll(b, objects, scenarios, options())
	}
}

func TestSpeed(t *testing.T) {
	objects, scenarios := decode(t, many(1000))
	began := time.Now()
	report := runAll(t, objects, scenarios, options())
	// The limit is ten times the goal, for busy machines.
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("1,000 scenarios took %s", took)
	}
	if report.Passed == 0 || report.Failed == 0 || report.Passed+report.Failed != 1000 {
		t.Errorf("%d passed, %d failed: expected some of both, 1000 in all", report.Passed, report.Failed)
	}
}

// TestParallelism runs the same scenarios at several parallelisms and expects identical reports.
func TestParallelism(t *testing.T) {
	objects, scenarios := decode(t, many(200))
	for _, failFast := range []bool{false, true} {
		var want []byte
		for _, parallel := range []int{1, 2, 7, 64} {
			o := options()
			o.Parallel, o.FailFast = parallel, failFast
			got, err := json.Marshal(runAll(t, objects, scenarios, o))
			if err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = got
			}
			if !bytes.Equal(want, got) {
				t.Errorf("fail-fast %t, parallel %d: the report differs from that of parallel 1", failFast, parallel)
			}
		}
	}
}

func TestFailFast(t *testing.T) {
	objects, scenarios := decode(t, weatherTool+`
apiVersion: toolctl.dev/v1
kind: Scenario
metadata: {name: a}
spec: {turns: [{calls: [{tool: pay}]}]}
---
apiVersion: toolctl.dev/v1
kind: Scenario
metadata: {name: b}
spec: {turns: [{calls: [{tool: bare}]}]}
---
apiVersion: toolctl.dev/v1
kind: Scenario
metadata: {name: c}
spec: {turns: [{calls: [{tool: pay}]}]}
`)
	o := options()
	o.FailFast = true
	r := runAll(t, objects, scenarios, o)
	got := fmt.Sprint(r.Scenarios[0].Status, r.Scenarios[1].Status, r.Scenarios[2].Status)
	if want := fmt.Sprint(scenario.Passed, scenario.Failed, scenario.Skipped); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
