package action_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/action"
)

// Tools of one name in two namespaces have the names by which clients know them, and a file of requests may name them in
// every form.
func TestSearchNames(t *testing.T) {
	const two = `apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: get-order, namespace: shop}
spec: {description: Returns an order of the shop, input_schema: {type: object}, mock_result: {}}
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: get-order, namespace: bar}
spec: {description: Returns a drink of the bar, input_schema: {type: object}, mock_result: {}}
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: pour, namespace: bar}
spec: {description: Pours a drink, input_schema: {type: object}, mock_result: {}}
`
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	c := &action.Config{Files: []string{write("tools.yaml", two)}}
	found, err := (&action.Search{Config: c, Query: "an order of the shop", Limit: 1}).Run(t.Context())
	if err != nil || len(found) != 1 || found[0].Name != "shop__get-order" || found[0].Namespace != "shop" || found[0].Tool != "get-order" {
		t.Fatalf("got %+v, %v", found, err)
	}
	asks := write("asks.jsonl", `{"ask": "shop", "right": [["shop/get-order"]]}
{"ask": "drink", "right": [["bar__get-order", "shop__get-order"], ["pour"]]}`)
	r, err := (&action.EvaluateSearch{Search: action.Search{Config: c}, File: asks}).Run(t.Context())
	if err != nil || r.Recall5 != 1 || r.Tools != 3 || r.ListTokens == 0 || r.MenuTokens < 100 {
		t.Errorf("got %+v, %v", r, err)
	}
	ambiguous := write("ambiguous.jsonl", `{"ask": "shop", "right": [["get-order"]]}`)
	if r, err := (&action.EvaluateSearch{Search: action.Search{Config: c}, File: ambiguous}).Run(t.Context()); err == nil {
		t.Errorf("an ambiguous name was taken: %+v", r)
	}
}

func TestSuggestAsks(t *testing.T) {
	c := config(t, folder(t, map[string]string{"hello": "hi"}))
	apply(t, action.Apply{Config: c})
	c = &action.Config{DSN: c.DSN}
	st, err := c.OpenStore(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	minute := 0
	record := func(session, namespace, tool, status, query string) {
		minute++
		args, _ := json.Marshal(map[string]string{"query": query})
		if err := st.AppendAudit(t.Context(), v1.AuditRecord{Time: began.Add(time.Duration(minute) * time.Minute), CallID: session, Session: session, Namespace: namespace, Tool: tool, Status: status, Args: args}); err != nil {
			t.Fatal(err)
		}
	}
	find := func(session, query string) { record(session, "", v1.FindTools, v1.StatusComplete, query) }
	call := func(session, tool string) { record(session, "default", tool, v1.StatusFailed, "") }

	find("a", "pay  money back to ann@shop.example, order 123456")
	find("b", "weather")
	find("a", "reimburse")
	call("b", "get-weather") // the query led to it
	call("a", "refund-order")
	call("a", "get-order") // belongs to no query
	find("c", "Reimburse")
	record("c", "", v1.FindTools, v1.StatusFailed, "a tool that does not exist")
	find("c", "reimburse with ghp_0123456789abcdef")
	find("c", "")
	find("d", "Pay money back to bob@shop.example, order 99999")
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}

	at := func(minute int) time.Time { return began.Add(time.Duration(minute) * time.Minute) }
	want := []action.SuggestedAsk{
		{Ask: "pay money back to … , order …", Times: 2, Last: at(11), Then: []string{"refund-order"}},
		{Ask: "reimburse with [REDACTED]", Times: 1, Last: at(9), Then: []string{}},
		{Ask: "reimburse", Times: 1, Last: at(7), Then: []string{}},
	}
	got, err := (&action.SuggestAsks{Config: c}).Run(t.Context())
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("(-want +got) %v\n%s", err, diff)
	}
	got, err = (&action.SuggestAsks{Config: c, Since: at(9)}).Run(t.Context())
	if err != nil || len(got) != 2 {
		t.Errorf("since: got %v, %v", got, err)
	}
	if _, err := (&action.SuggestAsks{Config: &action.Config{Files: []string{"x"}}}).Run(t.Context()); !wrong(err) {
		t.Errorf("with files: got %v, want wrong usage", err)
	}
}
