package update

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/scenario"
)

func TestUpdateText(t *testing.T) {
	const head = "apiVersion: toolctl.dev/v1\nkind: Scenario\nmetadata: {name: s}\nspec:\n"
	tests := map[string]struct {
		before, after string
		field, value  string
		err           string
	}{
		"a scalar": {
			before: "  turns:\n  - calls:\n    - tool: a\n      expect:\n        result: {n: 1}   # one\n\n    # next\n    - {tool: b}\n",
			field:  "/spec/turns/0/calls/0/expect/result/n", value: `2`,
			after: "  turns:\n  - calls:\n    - tool: a\n      expect:\n        result: {n: 2} # one\n\n    # next\n    - {tool: b}\n",
		},
		"a text that YAML would read otherwise": {
			before: "  turns:\n  - calls:\n    - {tool: a, expect: {result: x}}\n",
			field:  "/spec/turns/0/calls/0/expect/result", value: `"no"`,
			after: "  turns:\n  - calls:\n    - {tool: a, expect: {result: \"no\"}}\n",
		},
		"a missing expectation": {
			before: "  turns:\n    - calls:\n        - tool: a\n          args: {b: 1}\n  assertions: []\n",
			field:  "/spec/turns/0/calls/0/expect", value: `{"status":"failed","error":{"type":"timeout"}}`,
			after: "  turns:\n    - calls:\n        - tool: a\n          args: {b: 1}\n          expect:\n            status: failed\n            error:\n              type: timeout\n  assertions: []\n",
		},
		"calls on one line make the turn be written": {
			before: "  turns:\n  - user: x\n    calls: [{tool: a, expect: {status: failed}}]\n  - calls: [{tool: b}]\n",
			field:  "/spec/turns/0/calls/0/expect/status", value: `"complete"`,
			after: "  turns:\n  - user: x\n    calls: [{tool: a, expect: {status: complete}}]\n  - calls: [{tool: b}]\n",
		},
		"what is gone is removed": {
			before: "  turns:\n  - calls:\n    - tool: a\n      expect: {result: {a: 1, b: 2}}\n",
			field:  "/spec/turns/0/calls/0/expect/result/b",
			after:  "  turns:\n  - calls:\n    - tool: a\n      expect: {result: {a: 1}}\n",
		},
		"nothing but one line": {
			before: "  turns: [{calls: [{tool: a}]}]\n", field: "/spec/turns/0/calls/0/expect", value: `{"status":"failed"}`,
			err: errFlow.Error(),
		},
		"a place that is not there": {
			before: "  turns:\n  - calls:\n    - {tool: a}\n", field: "/spec/turns/0/calls/3/expect", value: `{"status":"failed"}`,
			err: "spec.turns[0].calls[3].expect no longer exists",
		},
	}
	s := v1.NewObject(v1.KindScenario).(*v1.Scenario)
	s.Metadata.Name = "s"
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			u := scenario.Update{Field: tt.field}
			if tt.value != "" {
				u.Value = []byte(tt.value)
			}
			other := "# first\nkind: Tool\n---\n"
			got, err := updateText([]byte(other+head+tt.before), s, []scenario.Update{u})
			if tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Fatalf("error %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(other+head+tt.after, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if _, violations := manifest.Decode("s.yaml", got, manifest.Options{}); slices.ContainsFunc(violations, func(f v1.Violation) bool { return strings.Contains(f.Message, "not YAML") }) {
				t.Errorf("no YAML: %v", violations)
			}
		})
	}
}
