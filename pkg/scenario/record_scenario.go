package scenario

import (
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Scenario returns the recorded calls as a scenario with one turn for each call, against the
// cassette. It expects the recorded status and type of error only, since the results come from
// the cassette.
func (r *Recorder) Scenario(name, cassette string) *v1.Scenario {
	r.mu.Lock()
	calls := slices.Clone(r.calls)
	r.mu.Unlock()
	s := &v1.Scenario{Header: v1.Header{APIVersion: v1.APIVersion, Kind: v1.KindScenario, Metadata: v1.Metadata{Name: name}}}
	s.Spec.Mocks = map[string]v1.Mock{}
	for _, rec := range calls {
		tool := strings.TrimPrefix(rec.Tool, v1.DefaultNamespace+"/")
		s.Spec.Mocks[tool] = v1.Mock{Cassette: cassette}
		if s.Spec.Tools == nil || !slices.Contains(s.Spec.Tools, tool) {
			s.Spec.Tools = append(s.Spec.Tools, tool)
		}
		expect := &v1.Expect{Status: v1.StatusComplete}
		if rec.Error != nil {
			expect = &v1.Expect{Status: v1.StatusFailed, Error: &v1.ExpectError{Type: rec.Error.Type}}
		}
		s.Spec.Turns = append(s.Spec.Turns, v1.Turn{Calls: []v1.ScenarioCall{{Tool: tool, Args: rec.Args, Expect: expect}}})
	}
	return s
}
