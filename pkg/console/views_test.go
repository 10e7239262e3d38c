package console_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/console"
	"toolctl.dev/toolctl/pkg/scenario"
	"toolctl.dev/toolctl/pkg/scenario/report"
	"toolctl.dev/toolctl/pkg/store/memory"
)

// TestWhoSeesWhat checks that each principal sees only its own calls and permitted objects, and that operators see
// everything, on every page, in the API and in events.
func TestWhoSeesWhat(t *testing.T) {
	upstream := serve(t, options{manifests: tool("shown", "") + "---\n" + tool("secret-tool", ", description: schema-of-the-secret")})
	st := memory.New(memory.Options{})
	t.Cleanup(func() { _ = st.Close() })
	file := filepath.Join(t.TempDir(), report.KeptFile)
	played := scenario.Result{Name: "looks", Namespace: "default", Status: scenario.Passed, Turns: []scenario.Turn{{Calls: []scenario.Call{
		{Tool: "look", Args: json.RawMessage(`{"q":"arguments-of-the-test"}`), Result: v1.Result{Tool: "look", Namespace: "default"}},
	}}}}
	if err := report.Keep(file, &report.Kept{Report: &scenario.Report{Scenarios: []scenario.Result{played}}, Paths: []string{"/srv/paths-of-the-test"}, Coverage: &scenario.Coverage{
		Policies: []scenario.CoveredObject{{Namespace: "default", Name: "policy-of-others"}},
	}}); err != nil {
		t.Fatal(err)
	}
	s := serve(t, options{
		store: st, principals: []string{"ann", "bob", "tom"}, console: console.Options{TestReport: file, Operators: v1.Approvers{Principals: []string{"ann"}}},
		manifests: fmt.Sprintf(`
apiVersion: toolctl.dev/v1
kind: MCPServer
metadata: {name: up}
spec: {url: %q, allow_private_network: true}
---
apiVersion: toolctl.dev/v1
kind: MCPServer
metadata: {name: down}
spec: {command: sh, args: [-c, "echo password=hunter2 >&2; exit 1"]}
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: look, annotations: {owner: owner-of-the-tool}}
spec:
  description: Looks.
  input_schema: {type: object, properties: {q: {type: string}}}
  http: {url: "http://127.0.0.1:1/address-of-the-tool", headers: {X-Team: header-of-the-tool}, allow_private_network: true}
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: hidden}
spec: {blocklist: ["up__secret*"], match: {principals: [bob, tom]}}
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: policy-of-others}
spec: {max_total_tool_calls: 5, match: {principals: [principal-of-others]}}
`, strings.TrimSuffix(upstream.url, "ui/")+"mcp"),
	})
	for _, it := range []struct{ path, ready string }{{"api/servers", `"ready":true`}, {"api/servers", "hunter2"}} { // until both were queried
		for _, body := s.ask("GET", it.path, "ann", ""); !strings.Contains(body, it.ready); {
			_, body = s.ask("GET", it.path, "ann", "")
		}
	}
	call := func(who string) string {
		t.Helper()
		code, body := s.ask("POST", "api/tools/default/look/call", who, `{"args":{"q":"arguments-of-`+who+`"}}`)
		if code != http.StatusOK || strings.Contains(body, "effects") && strings.Contains(body, `"host"`) {
			t.Errorf("the call of %s: %d %s", who, code, body)
		}
		for { // the feed may lag behind the calls
			var calls struct {
				Items []struct {
					CallID string `json:"call_id"`
				}
			}
			_, body := s.ask("GET", "api/calls?principal="+who, who, "")
			if err := json.Unmarshal([]byte(body), &calls); err != nil {
				t.Fatal(body)
			}
			if len(calls.Items) > 0 {
				return calls.Items[0].CallID
			}
		}
	}
	bobs, toms := call("bob"), call("tom")
	hidden := map[string][]string{
		"calls": {"arguments-of-bob"}, "servers": {"hunter2", "secret-tool", "schema-of-the-secret", "127.0.0.1"},
		"tool": {"address-of-the-tool", "header-of-the-tool", "owner-of-the-tool", "principal-of-others", "policy-of-others"}, "tests": {"arguments-of-the-test", "paths-of-the-test", "policy-of-others"},
	}
	for _, tt := range []struct {
		of, method, path, body string
		operators              []string // the parts that operators see
	}{
		{"calls", "GET", "api/calls", "", []string{"arguments-of-bob", "arguments-of-tom"}},
		{"calls", "GET", "api/calls/" + bobs, "", []string{"arguments-of-bob"}},
		{"calls", "GET", "activity", "", []string{bobs, toms}},
		{"calls", "GET", "activity/" + bobs, "", []string{"arguments-of-bob"}},
		{"calls", "GET", "audit", "", []string{">bob<", ">tom<"}},
		{"servers", "GET", "api/servers", "", []string{"hunter2", "secret-tool"}},
		{"servers", "GET", "servers", "", []string{"hunter2"}},
		{"servers", "GET", "api/tools", "", []string{"secret-tool"}},
		{"servers", "GET", "", "", []string{"secret-tool"}},
		{"tool", "GET", "api/tools/default/look", "", []string{"address-of-the-tool", "owner-of-the-tool"}},
		{"tool", "GET", "tools/default/look", "", []string{"policy-of-others"}},
		{"tool", "POST", "api/tools/default/look/plan", `{"args":{}}`, []string{"address-of-the-tool"}},
		{"tool", "POST", "api/tools/default/look/explain", `{"args":{}}`, []string{"policy-of-others"}},
		{"tool", "POST", "tools/default/look/try", "action=plan", []string{"address-of-the-tool"}},
		{"tests", "GET", "api/tests", "", []string{"arguments-of-the-test", "paths-of-the-test", "policy-of-others"}},
		{"tests", "GET", "prompts", "", []string{"paths-of-the-test"}},
	} {
		_, body := s.ask(tt.method, tt.path, "ann", tt.body)
		for _, text := range tt.operators {
			if !strings.Contains(body, text) {
				t.Errorf("an operator does not see %s in %s: %.2000s", text, tt.path, body)
			}
		}
		_, body = s.ask(tt.method, tt.path, "tom", tt.body)
		for _, text := range append(hidden[tt.of], bobs, ">bob<") {
			if strings.Contains(body, text) && !strings.Contains(tt.path, text) {
				t.Errorf("tom sees %s in %s: %.2000s", text, tt.path, body)
			}
		}
		if tt.of == "calls" && !strings.Contains(tt.path, bobs) && !strings.Contains(body, toms) && !strings.Contains(body, ">tom<") {
			t.Errorf("tom does not see his own call in %s: %.2000s", tt.path, body)
		}
	}
	if code, _ := s.ask("GET", "api/calls/"+bobs, "tom", ""); code != http.StatusNotFound {
		t.Errorf("tom is told that there is a call of bob: %d", code)
	}
	if _, body := s.ask("GET", "api/servers", "tom", ""); !strings.Contains(body, "shown") || strings.Contains(body, `"down"`) {
		t.Errorf("the servers that tom sees: %s", body)
	}
	// Events do not contain the calls of others either: the event of tom follows that of bob.
	told := make(chan string, 1)
	go func() { told <- s.event("tom", "call") }()
	for row := ""; row == ""; {
		for _, who := range []string{"bob", "tom"} {
			s.ask("POST", "api/tools/default/look/call", who, `{"args":{}}`)
		}
		select {
		case row = <-told:
			if !strings.Contains(row, `"principal":"tom"`) {
				t.Errorf("tom is told of %s", row)
			}
		default:
		}
	}
}
