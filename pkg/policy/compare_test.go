package policy_test

import (
	"encoding/json"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/policy"
)

func policyOf(t *testing.T, spec string) *v1.ToolPolicy {
	t.Helper()
	if spec == "" {
		return nil
	}
	p := &v1.ToolPolicy{Header: v1.Header{APIVersion: v1.APIVersion, Kind: v1.KindToolPolicy, Metadata: v1.Metadata{Name: "p"}}}
	if err := json.Unmarshal([]byte(spec), &p.Spec); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCompare(t *testing.T) {
	known := policy.NewTools([]policy.Subject{
		{Namespace: "default", Name: "get-news"}, {Namespace: "default", Name: "pay-invoice"},
		{Namespace: "default", Name: "pay-rent", Labels: map[string]string{"team": "pay"}},
		{Namespace: "other", Name: "pay-other"},
	})
	// A case is written as tool, principal, earlier calls and their relation, decisions and rule.
	tests := map[string]struct{ before, after, tighter, looser string }{
		"nothing":               {`{"blocklist":["a*"]}`, `{"blocklist":["a*","ab"]}`, "", ""},
		"blocked":               {`{}`, `{"blocklist":["pay-*"]}`, "pay-invoice allow deny blocklist", ""},
		"blocked, not there":    {`{}`, `{"blocklist":["drop-*"]}`, "drop-any allow deny blocklist", ""},
		"blocked, then allowed": {`{"blocklist":["pay-rent","x"]}`, `{"blocklist":["x"]}`, "", "pay-rent deny allow blocklist"},
		"both ways":             {`{"blocklist":["pay-rent"]}`, `{"blocklist":["pay-invoice"]}`, "pay-invoice allow deny blocklist", "pay-rent deny allow blocklist"},
		"allowlist":             {`{"allowlist":["get-*","pay-rent"]}`, `{"allowlist":["get-*"]}`, "pay-rent allow deny allowlist", ""},
		"allowlist, empty":      {`{}`, `{"allowlist":[]}`, "get-news allow deny allowlist", ""},
		"fewer calls":           {`{"max_total_tool_calls":5}`, `{"max_total_tool_calls":3}`, "get-news 3 in the same turn allow deny max_total_tool_calls", ""},
		"more calls":            {`{"max_total_tool_calls":5}`, `{"max_total_tool_calls":1000000000}`, "", "get-news 5 in the same turn deny allow max_total_tool_calls"},
		"turn for session": {`{"max_tool_calls_per_turn":2}`, `{"max_total_tool_calls":2}`,
			"get-news 2 in other turns of the session allow deny max_total_tool_calls", ""},
		"by principal": {`{"limits":[{"max_calls":2,"per":"session"}]}`, `{"limits":[{"max_calls":2,"per":"session","by":["principal"]}]}`,
			"get-news 2 in other sessions allow deny limits[0]", ""},
		"by everybody": {`{"limits":[{"max_calls":2,"per":"hour"}]}`, `{"limits":[{"max_calls":2,"per":"hour","by":["principal"]}]}`,
			"", "get-news 2 in sessions of other principals deny allow limits[0]"},
		"hour for minute": {`{"limits":[{"max_calls":2,"per":"minute"}]}`, `{"limits":[{"max_calls":2,"per":"hour"}]}`,
			"get-news 2 in other minutes allow deny limits[0]", ""},
		"by tool": {`{"limits":[{"tools":["pay-*","get-*"],"max_calls":2,"per":"session","by":["session"]}]}`, `{"limits":[{"tools":["pay-*","get-*"],"max_calls":2,"per":"session","by":["session","tool"]}]}`,
			"", "get-news 2 of pay-invoice in the same turn deny allow limits[0]"},
		"approval":         {`{}`, `{"require_approval":["pay-*"]}`, "pay-invoice allow pending require_approval", ""},
		"approval dropped": {`{"require_approval":["pay-*"]}`, `{}`, "", "pay-invoice pending allow require_approval"},
		"approval shorter": {`{"require_approval":["pay-*"]}`, `{"require_approval":["pay-*"],"approval_timeout_ms":1000}`, "pay-invoice pending pending require_approval", ""},
		"audit":            {`{"blocklist":["pay-*"]}`, `{"blocklist":["pay-*"],"mode":"audit"}`, "", "pay-invoice deny audit blocklist"},
		"principals": {`{"blocklist":["pay-*"],"match":{"principals":["ann"]}}`, `{"blocklist":["pay-*"],"match":{"principals":["ann","team-*"]}}`,
			"pay-invoice team-somebody allow deny blocklist", ""},
		"labels": {`{"blocklist":["*"],"match":{"labels":{"team":"pay"}}}`, `{"blocklist":["*"],"match":{"labels":{"team":"web"}}}`,
			"tool-any allow deny blocklist", "pay-rent deny allow blocklist"},
		"new":         {``, `{"tool_choice":"none"}`, "get-news allow deny tool_choice", ""},
		"gone":        {`{"limits":[{"tools":["pay-*"],"max_calls":1,"per":"session"}]}`, ``, "", "pay-invoice 1 in the same turn deny allow limits[0]"},
		"server tool": {`{}`, `{"blocklist":["mcp__fs__write_*"]}`, "fs__write_any allow deny blocklist", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tighter, looser := policy.Compare(t.Context(), policyOf(t, tt.before), policyOf(t, tt.after), known)
			if got := caseText(tighter); got != tt.tighter {
				t.Errorf("tighter: got %q, want %q", got, tt.tighter)
			}
			if got := caseText(looser); got != tt.looser {
				t.Errorf("looser: got %q, want %q", got, tt.looser)
			}
		})
	}
}

func caseText(c *policy.Case) string {
	if c == nil {
		return ""
	}
	text := c.Tool
	if c.Principal != "" {
		text += " " + c.Principal
	}
	if c.Earlier > 0 {
		n, _ := json.Marshal(c.Earlier)
		text += " " + string(n) + " " + c.Where
	}
	return text + " " + c.Was + " " + c.Now + " " + c.Rule
}

func TestCompareTools(t *testing.T) {
	rules := []*v1.ToolPolicy{policyOf(t, `{"blocklist":["*"],"match":{"labels":{"team":"pay"}}}`)}
	before := policy.Subject{Namespace: "default", Name: "pay", Labels: map[string]string{"team": "pay"}}
	after := policy.Subject{Namespace: "default", Name: "pay"}
	tighter, looser := policy.CompareTools(t.Context(), rules, before, after)
	if tighter != nil || caseText(looser) != "pay deny allow blocklist" {
		t.Errorf("tighter %+v, looser %+v", tighter, looser)
	}
}

func TestSame(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{`{"blocklist":["b","a","a*"],"mode":"enforce"}`, `{"blocklist":["a*","b"],"tool_choice":"auto"}`, true},
		{`{"allowlist":[]}`, `{}`, false},
		{`{"limits":[{"name":"x","max_calls":1,"per":"turn"},{"tools":["a"],"max_calls":2,"per":"day"}]}`, `{"limits":[{"tools":["a"],"max_calls":2,"per":"day"},{"max_calls":1,"per":"turn"}]}`, true},
		{`{"limits":[{"max_calls":1,"per":"turn"}]}`, `{"limits":[{"max_calls":2,"per":"turn"}]}`, false},
	} {
		if got := policy.Same(&policyOf(t, tt.a).Spec, &policyOf(t, tt.b).Spec); got != tt.want {
			t.Errorf("%s and %s: got %v", tt.a, tt.b, got)
		}
	}
}
