package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// FromExamples returns a scenario with one turn for each of a tool's spec.examples that is a call. Its places
// are those of the tool's manifest. It returns nil if no example is a call.
func FromExamples(tool *v1.Tool) *v1.Scenario {
	if len(tool.ExampleCalls()) == 0 {
		return nil
	}
	s := v1.NewObject(v1.KindScenario).(*v1.Scenario)
	s.Metadata.Name, s.Metadata.Namespace = tool.Metadata.Name, tool.Metadata.Namespace
	s.Source = tool.Source
	s.Fields = map[string]v1.Source{}
	name := tool.Namespace() + "/" + tool.Metadata.Name
	for i, e := range tool.Spec.Examples {
		if !e.IsCall() {
			continue
		}
		from, to := v1.Pointer("/spec/examples", strconv.Itoa(i)), fmt.Sprintf("/spec/turns/%d/calls/0", len(s.Spec.Turns))
		s.Spec.Turns = append(s.Spec.Turns, v1.Turn{Calls: []v1.ScenarioCall{{Tool: name, Args: e.Args, Expect: e.Expect}}})
		for field, place := range tool.Fields {
			if rest, ok := strings.CutPrefix(field, from); ok && (rest == "" || rest[0] == '/') {
				s.Fields[to+rest] = place
			}
		}
	}
	return s
}

// HoldResults returns the objects with strict validation of results, even for tools whose calls
// only warn of drift.
func HoldResults(objects []v1.Object) []v1.Object {
	out := slices.Clone(objects)
	for i, obj := range objects {
		t, ok := obj.(*v1.Tool)
		if !ok || t.Spec.Validation.ResultMode() == v1.Enforce {
			continue
		}
		held, v := *t, *t.Spec.Validation
		v.Result = v1.Enforce
		held.Spec.Validation = &v
		out[i] = &held
	}
	return out
}
