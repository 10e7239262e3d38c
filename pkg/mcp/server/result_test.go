package server_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp/server"
)

func declares(schema string) func(*server.Offer) {
	return func(o *server.Offer) { o.Tool.Spec.OutputSchema = json.RawMessage(schema) }
}

func TestResults(t *testing.T) {
	size := int64(3)
	until := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	done := func(content string, parts ...v1.Part) v1.Result {
		return v1.Result{Status: v1.StatusComplete, Content: json.RawMessage(content), Parts: parts}
	}
	text := func(s string) v1.Part { return v1.Part{Type: v1.PartText, Text: s} }
	for _, tc := range []struct {
		name   string
		res    v1.Result
		err    error
		schema string
		mcp    bool   // the tool belongs to an MCP server
		want   string // for a client of 2025-11-25
		modern string // for a client of 2026-07-28, if different
	}{
		{name: "object", res: done(`{"a":1.0}`), want: `{"content":[{"type":"text","text":"{\"a\":1.0}"}],"structuredContent":{"a":1.0}}`},
		{name: "text", res: done(`"hi <b>"`), want: `{"content":[{"type":"text","text":"hi <b>"}]}`},
		{name: "array", res: done(`[1]`), want: `{"content":[{"type":"text","text":"[1]"}]}`},
		{name: "declared array", res: done(`[1]`), schema: `{"type":"array"}`, want: `{"content":[{"type":"text","text":"[1]"}]}`,
			modern: `{"content":[{"type":"text","text":"[1]"}],"structuredContent":[1]}`},
		{name: "nothing", res: done(``), want: `{"content":[]}`},
		{name: "null", res: done(`null`), want: `{"content":[{"type":"text","text":"204 No Content"}]}`},
		{name: "null of an HTTP tool", res: v1.Result{Status: v1.StatusComplete, Content: json.RawMessage(`null`), Effects: []v1.Effect{{Kind: v1.EffectHTTP, HTTPStatus: 202}}},
			want: `{"content":[{"type":"text","text":"202 Accepted, no content"}]}`},
		{name: "an MCP server that says nothing", res: done(`null`), mcp: true, want: `{"content":[]}`},
		{name: "declared null", res: done(` null `), schema: `{"type":["object","null"]}`, want: `{"content":[{"type":"text","text":"204 No Content"}]}`,
			modern: `{"content":[{"type":"text","text":"204 No Content"}],"structuredContent":null}`},
		{name: "a text part that holds the content", res: done(`{"a":1}`, text(`{"a":1}`)), want: `{"content":[{"type":"text","text":"{\"a\":1}"}]}`},
		{name: "the same, declared", res: done(`{"a":1}`, text(` {"a":1}`)), schema: `{"type":"object"}`, want: `{"content":[{"type":"text","text":" {\"a\":1}"}],"structuredContent":{"a":1}}`},
		{name: "content beside text", res: done(`{"a":1}`, text(`one`)), want: `{"content":[{"type":"text","text":"one"}],"structuredContent":{"a":1}}`},
		{name: "parts", res: done(`null`,
			v1.Part{Type: v1.PartImage, Data: "AAAA", MIMEType: "image/png", Annotations: json.RawMessage(`{"priority":1}`)},
			v1.Part{Type: v1.PartAudio, Data: "AAAA", MIMEType: "audio/wav", Meta: json.RawMessage(`{"k":"v"}`)},
			v1.Part{Type: v1.PartResource, Resource: &v1.ResourceContents{URI: "file:///a", MIMEType: "text/plain"}},
			v1.Part{Type: v1.PartResource, Resource: &v1.ResourceContents{URI: "file:///b", Blob: "AAAA"}},
			v1.Part{Type: v1.PartResourceLink, URI: "file:///c", Name: "c", Size: &size},
			text("")),
			want: `{"content":[{"type":"image","mimeType":"image/png","data":"AAAA","annotations":{"priority":1}},` +
				`{"type":"audio","mimeType":"audio/wav","data":"AAAA","_meta":{"k":"v"}},` +
				`{"type":"resource","resource":{"uri":"file:///a","mimeType":"text/plain","text":""}},` +
				`{"type":"resource","resource":{"uri":"file:///b","blob":"AAAA"}},` +
				`{"type":"resource_link","uri":"file:///c","name":"c","size":3},{"type":"text","text":""}]}`},
		{name: "kinds that MCP does not have", res: done(`{"a":1}`,
			v1.Part{Type: v1.PartVideo, Data: "AAAA", MIMEType: "video/mp4"}, v1.Part{Type: v1.PartImage, URI: "https://example.com/a.png", MIMEType: "image/png"}),
			want: `{"content":[{"type":"resource","resource":{"uri":"toolctl:video","mimeType":"video/mp4","blob":"AAAA"}},` +
				`{"type":"resource_link","uri":"https://example.com/a.png","name":"image","mimeType":"image/png"},{"type":"text","text":"{\"a\":1}"}],"structuredContent":{"a":1}}`},
		{name: "annotations that are not valid JSON", res: done(``, v1.Part{Type: v1.PartText, Text: "x", Annotations: json.RawMessage(`{`)}), want: `{"content":[{"type":"text","text":"x"}]}`},
		{name: "wrong arguments", err: v1.NewValidationError(v1.ArgsInvalid, "do", []v1.Violation{{Path: "/n", Message: "expected integer, got string"}, {Path: "/m", Message: "missing", Source: v1.Source{File: "/etc/x.yaml"}}}),
			want: `{"content":[{"type":"text","text":"tool \"do\": invalid arguments\n- /n: expected integer, got string\n- /m: missing"}],"isError":true}`},
		{name: "refused", err: &v1.PolicyError{Tool: "do", Policy: "caps", Rule: "max_total_tool_calls", Message: "2 of 2 calls are used", Limit: 2, Used: 2, Source: v1.Source{File: "/etc/x.yaml"}},
			want: `{"content":[{"type":"text","text":"tool \"do\": refused by policy \"caps\", rule max_total_tool_calls: 2 of 2 calls are used (limit 2, used 2)"}],"isError":true}`},
		{name: "unavailable", err: &v1.MCPError{Server: "files", Message: "it did not start"}, want: `{"content":[{"type":"text","text":"mcp server \"files\": it did not start"}],"isError":true}`},
		{name: "failed with words of its own", res: v1.Result{Status: v1.StatusFailed, Content: json.RawMessage(`"no such file"`), Parts: []v1.Part{text("no such file")}},
			err: &v1.ExecutionError{Tool: "do", Phase: v1.PhaseExecute, Message: "no such file"}, schema: `{"type":"object"}`, want: `{"content":[{"type":"text","text":"no such file"}],"isError":true}`},
		{name: "failed with content", res: v1.Result{Status: v1.StatusFailed, Content: json.RawMessage(`{"code":7}`)},
			err: &v1.ExecutionError{Tool: "do", Phase: v1.PhaseExecute, Message: "status 500"}, want: `{"content":[{"type":"text","text":"tool \"do\": status 500"},{"type":"text","text":"{\"code\":7}"}],"structuredContent":{"code":7},"isError":true}`},
		{name: "pending", res: v1.Result{Status: v1.StatusPending, Pending: &v1.PendingToolInfo{Reason: "requires_approval", Message: "pay 100", ToolName: "do", Args: json.RawMessage(`{"a":1}`), ID: "p1", ExpiresAt: &until}},
			want: `{"_meta":{"toolctl.dev/pending":{"reason":"requires_approval","message":"pay 100","tool_name":"do","expires_at":"2026-01-02T03:04:05Z","id":"p1"}},` +
				`"content":[{"type":"text","text":"the call was not made: pay 100 (pending call p1, until 2026-01-02T03:04:05Z). Ask a person to approve it with 'toolctl approvals approve p1', then repeat the call with the same arguments"}],"isError":true}`},
		{name: "pending, for somebody", res: v1.Result{Status: v1.StatusPending, Pending: &v1.PendingToolInfo{Message: "pay 100", ID: "p1", Approvers: []v1.Approvers{{Principals: []string{"ann"}}, {Self: true}}}},
			want: `{"_meta":{"toolctl.dev/pending":{"reason":"","message":"pay 100","tool_name":"","approvers":[{"principals":["ann"]},{"self":true}],"id":"p1"}},` +
				`"content":[{"type":"text","text":"the call was not made: pay 100 (pending call p1). Ask a person who may decide on it (ann) to approve it with 'toolctl approvals approve p1', then repeat the call with the same arguments"}],"isError":true}`},
		{name: "pending, for a reason that nobody knows", res: v1.Result{Status: v1.StatusPending},
			want: `{"_meta":{"toolctl.dev/pending":{"reason":"","message":"","tool_name":"","id":""}},"content":[{"type":"text","text":"the call was not made: it waits for a decision"}],"isError":true}`},
		{name: "what the policies decided, and what is left", res: v1.Result{Status: v1.StatusComplete, Content: json.RawMessage(`"x"`), Policy: &v1.PolicyDecision{Decision: v1.DecisionAllow}, Meta: json.RawMessage(`{"own":1}`),
			Budgets: []v1.Budget{{Rule: "limits[0]", Policy: "p", Limit: 3, Used: 2, Remaining: 1, ResetsAt: until}, {Rule: "max_total_tool_calls", Policy: "p", Limit: 9, Used: 9}}},
			want: `{"_meta":{"own":1,"toolctl.dev/policy":{"decision":"allow","remaining":[{"rule":"limits[0]","policy":"p","limit":3,"used":2,"remaining":1,"resets_at":"2026-01-02T03:04:05Z"},{"rule":"max_total_tool_calls","policy":"p","limit":9,"used":9,"remaining":0}]}},"content":[{"type":"text","text":"x"}]}`},
		{name: "what a policy refused", res: v1.Result{Policy: &v1.PolicyDecision{Decision: v1.DecisionDeny, Rule: "blocklist", Policy: "p"}}, err: &v1.PolicyError{Tool: "do", Policy: "p", Rule: "blocklist", Message: "no"},
			want: `{"_meta":{"toolctl.dev/policy":{"decision":"deny","rule":"blocklist","policy":"p"}},"content":[{"type":"text","text":"tool \"do\": refused by policy \"p\", rule blocklist: no"}],"isError":true}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for protocol, version := range versions {
				want := tc.want
				if protocol == "modern" && tc.modern != "" {
					want = tc.modern
				}
				var change []func(*server.Offer)
				if tc.schema != "" {
					change = append(change, declares(tc.schema))
				}
				if tc.mcp {
					change = append(change, func(o *server.Offer) { o.Tool.Spec.MCP = &v1.MCPToolSpec{Server: "s"} })
				}
				raw := rawCall(t, server.New(answer(tc.res, tc.err, change...), server.Options{}), version)
				if protocol == "modern" {
					if raw["resultType"] != "complete" {
						t.Errorf("resultType %v", raw["resultType"])
					}
					delete(raw, "resultType")
					meta := raw["_meta"].(map[string]any)
					if delete(meta, "io.modelcontextprotocol/serverInfo"); len(meta) == 0 {
						delete(raw, "_meta")
					}
				}
				var wanted map[string]any
				if err := json.Unmarshal([]byte(want), &wanted); err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(wanted, raw); d != "" {
					t.Errorf("%s: %s", protocol, d)
				}
			}
		})
	}
}

// rawCall calls the tool "do" and returns the raw result.
func rawCall(t *testing.T, s *server.Server, version string) map[string]any {
	t.Helper()
	meta := ""
	lines := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	if version >= "2026-07-28" {
		lines, meta = "", `"_meta":{"io.modelcontextprotocol/protocolVersion":"`+version+`","io.modelcontextprotocol/clientCapabilities":{}},`
	}
	lines += `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{` + meta + `"name":"do"}}` + "\n"
	var out strings.Builder
	if err := s.ServeStdio(context.Background(), strings.NewReader(lines), &out); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		var m struct {
			ID     int            `json:"id"`
			Result map[string]any `json:"result"`
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("stdout holds more than messages: %q", line)
		}
		if m.ID == 2 && m.Result != nil {
			return m.Result
		}
	}
	t.Fatalf("no result in %s", out.String())
	return nil
}

func TestClientsReadResults(t *testing.T) {
	c := answer(v1.Result{Status: v1.StatusComplete, Parts: []v1.Part{{Type: v1.PartImage, Data: "aGk=", MIMEType: "image/png"}}}, nil)
	cs := overStdio(t, server.New(c, server.Options{}), versions["modern"], nil)
	res, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "do"})
	if err != nil {
		t.Fatal(err)
	}
	if image, ok := res.Content[0].(*sdk.ImageContent); !ok || string(image.Data) != "hi" {
		t.Errorf("got %s", toJSON(t, res.Content))
	}
}
