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
	"toolctl.dev/toolctl/pkg/store/storetest"
	"toolctl.dev/toolctl/pkg/validate"
)

// TestOpenAPIIsTrue checks that every operation of openapi.json responds with a documented status and a body that
// matches the schema.
func TestOpenAPIIsTrue(t *testing.T) {
	st := memory.New(memory.Options{})
	t.Cleanup(func() { st.Close() })
	t.Cleanup(func() { _ = st.Close() })
	apply(t, st, "aaaa", storetest.Tool("a", "1"))
	apply(t, st, "bbbb", storetest.Tool("a", "2"))
	file := filepath.Join(t.TempDir(), report.KeptFile)
	if err := report.Keep(file, &report.Kept{Report: &scenario.Report{Scenarios: []scenario.Result{{Name: "s", Status: scenario.Passed}}}, Coverage: &scenario.Coverage{}}); err != nil {
		t.Fatal(err)
	}
	s := serve(t, options{manifests: heldPay + "---" + greet + "---\napiVersion: toolctl.dev/v1\nkind: MCPServer\nmetadata: {name: down}\nspec: {url: 'http://127.0.0.1:1/mcp', allow_private_network: true}\n",
		store: st, principals: []string{"ann", "bob", "eve"}, console: console.Options{TestReport: file, Operators: v1.Approvers{Principals: []string{"ann"}}}})
	_, raw := s.ask("GET", "api/openapi.json", "", "")
	var doc struct {
		Paths      map[string]map[string]struct{ Responses map[string]json.RawMessage }
		Components json.RawMessage
	}
	if err := json.Unmarshal([]byte(raw), &doc); err != nil {
		t.Fatal(err)
	}
	id := func() string {
		t.Helper()
		_, body := s.ask("POST", "api/tools/default/pay/call", "bob", `{"args":{"to":"x"}}`)
		var res v1.Result
		if err := json.Unmarshal([]byte(body), &res); err != nil || res.Pending == nil {
			t.Fatal(body)
		}
		return res.Pending.ID
	}()
	if code, body := s.ask("POST", "api/tools/default/look/call", "bob", "{}"); code != http.StatusOK {
		t.Fatal(code, body)
	}
	var calls struct {
		Items []struct {
			CallID string `json:"call_id"`
		}
	}
	for len(calls.Items) < 2 { // until the feed has both calls
		_, body := s.ask("GET", "api/calls", "bob", "")
		if err := json.Unmarshal([]byte(body), &calls); err != nil {
			t.Fatal(body)
		}
	}
	asked, schemas := map[string]bool{}, validate.NewCache(validate.Options{})
	for _, tt := range []struct {
		operation, path, as, body string
		want                      int
	}{
		{"get /tools", "tools", "", "", 401},
		{"get /tools", "tools?q=pay", "bob", "", 200},
		{"get /tools/{namespace}/{name}", "tools/default/pay", "bob", "", 200},
		{"get /tools/{namespace}/{name}", "tools/default/pay", "eve", "", 404},
		{"post /tools/{namespace}/{name}/call", "tools/default/look/call", "bob", `{"args":{}}`, 200},
		{"post /tools/{namespace}/{name}/call", "tools/default/pay/call", "bob", `{"args":{"to":"x"}}`, 200},
		{"post /tools/{namespace}/{name}/call", "tools/default/pay/call", "bob", `{"args":{"to":[5]}}`, 422},
		{"post /tools/{namespace}/{name}/call", "tools/default/pay/call", "eve", `{"args":{}}`, 404},
		{"post /tools/{namespace}/{name}/plan", "tools/default/look/plan", "bob", `{"args":{}}`, 200},
		{"post /tools/{namespace}/{name}/plan", "tools/default/pay/plan", "bob", `{"args":{"to":[5]}}`, 422},
		{"post /tools/{namespace}/{name}/explain", "tools/default/pay/explain", "bob", `{"args":{}}`, 200},
		{"get /approvals", "approvals", "bob", "", 200},
		{"get /approvals/{id}", "approvals/" + id, "bob", "", 200},
		{"get /approvals/{id}", "approvals/" + id, "eve", "", 404},
		{"post /approvals/{id}", "approvals/" + id, "ann", `{}`, 400},
		{"post /approvals/{id}", "approvals/" + id, "bob", `{"approve":true}`, 403},
		{"post /approvals/{id}", "approvals/none", "ann", `{"approve":true}`, 404},
		{"post /approvals/{id}", "approvals/" + id, "ann", `{"approve":true,"args":{"to":5}}`, 422},
		{"post /approvals/{id}", "approvals/" + id, "ann", `{"approve":true,"args":{"to":"y"},"reason":"agreed"}`, 200},
		{"post /approvals/{id}", "approvals/" + id, "ann", `{"approve":true}`, 409},
		{"get /approvals", "approvals", "ann", "", 200},
		{"get /calls", "calls", "bob", "", 200},
		{"get /calls/{call}", "calls/" + calls.Items[0].CallID, "bob", "", 200},
		{"get /calls/{call}", "calls/none", "bob", "", 404},
		{"get /servers", "servers", "bob", "", 200},
		{"get /toolsets", "toolsets", "bob", "", 200},
		{"get /prompts", "prompts", "bob", "", 200},
		{"post /prompts/{namespace}/{owner}", "prompts/default/greet", "bob", `{"args":{"name":"A","times":1,"mood":"kind"}}`, 200},
		{"post /prompts/{namespace}/{owner}", "prompts/default/greet", "bob", `{"args":{}}`, 422},
		{"post /prompts/{namespace}/{owner}", "prompts/default/none", "bob", `{}`, 404},
		{"post /prompts/{namespace}/{owner}/{name}", "prompts/default/down/none", "bob", `{}`, 404},
		{"get /tests", "tests", "bob", "", 200},
		{"get /changes", "changes", "bob", "", 200},
		{"get /changes/pending", "changes/pending", "ann", "", 200},
		{"get /changes/pending", "changes/pending", "bob", "", 403},
		{"get /changes/revision", "changes/revision?set=shop&revision=2", "ann", "", 200},
		{"get /changes/revision", "changes/revision?set=shop", "ann", "", 400},
		{"get /changes/revision", "changes/revision?set=shop&revision=2", "bob", "", 403},
		{"get /changes/revision", "changes/revision?set=shop&revision=9", "ann", "", 404},
		{"post /changes/undo", "changes/undo", "ann", `{"set":"shop","revision":1}`, 200},
		{"post /changes/undo", "changes/undo", "ann", `{"set":"shop","revision":1,"from":1}`, 409},
		{"post /changes/undo", "changes/undo", "ann", `{"set":"shop","revision":1,"from":2}`, 200},
		{"post /changes/undo", "changes/undo", "ann", `{"revision":1}`, 400},
		{"post /changes/undo", "changes/undo", "bob", `{"set":"shop","revision":1}`, 403},
		{"post /changes/undo", "changes/undo", "ann", `{"set":"none","revision":1}`, 404},
		{"post /audit/verify", "audit/verify", "bob", `{}`, 200},
	} {
		method, path, _ := strings.Cut(tt.operation, " ")
		asked[tt.operation] = true
		code, body := s.ask(strings.ToUpper(method), "api/"+tt.path, tt.as, tt.body)
		if code != tt.want {
			t.Errorf("%s %s: %d, want %d: %s", tt.operation, tt.path, code, tt.want, body)
			continue
		}
		var answer struct {
			Content map[string]struct{ Schema map[string]any }
		}
		if err := json.Unmarshal(doc.Paths[path][method].Responses[fmt.Sprint(code)], &answer); err != nil {
			t.Errorf("%s: the status %d is not described", tt.operation, code)
			continue
		}
		schema := answer.Content["application/json"].Schema
		schema["components"] = doc.Components
		text, err := json.Marshal(schema)
		if err != nil {
			t.Fatal(err)
		}
		found, err := schemas.Schema(text, validate.Draft2020).ValidateJSON([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) > 0 {
			t.Errorf("%s %s: %d %s\n is not as described: %v", tt.operation, tt.path, code, body, found)
		}
	}
	for path, methods := range doc.Paths {
		for method := range methods {
			if !asked[method+" "+path] {
				t.Errorf("nothing asks %s %s", method, path)
			}
		}
	}
}
