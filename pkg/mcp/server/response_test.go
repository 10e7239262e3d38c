package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/callctx"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/mcp/server"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// streamed sends a call and returns the messages of its response one by one.
func (c *raw) streamed(body string, headers ...string) (kind string, next func() map[string]any) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url+"/mcp", strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Mcp-Protocol-Version", c.version)
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { res.Body.Close() })
	lines := bufio.NewScanner(res.Body)
	return res.Header.Get("Content-Type"), func() map[string]any {
		c.t.Helper()
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				var m map[string]any
				if err := json.Unmarshal([]byte(data), &m); err != nil {
					c.t.Fatalf("%v: %s", err, data)
				}
				return m
			}
		}
		return nil
	}
}

// A message before the result turns the response into a stream, which ends with the result.
func TestResponseBecomesAStream(t *testing.T) {
	c := catalogOf(offer("", "do"))
	late := make(chan func(mcp.Progress), 1)
	c.report = func(progress func(mcp.Progress)) {
		if progress != nil {
			progress(mcp.Progress{Progress: 1, Message: "one\ntwo"})
			late <- progress
		}
	}
	c.do = func(context.Context, v1.Call) (v1.Result, error) {
		return v1.Result{Status: v1.StatusComplete, Content: json.RawMessage("{\n  \"n\": 12345678901234567890\n}"), Structured: true}, nil
	}
	e := listen(t, server.New(c, server.Options{}), server.HTTPOptions{})
	old := &raw{t: t, url: e.url}
	old.open(`{}`)
	for name, call := range map[string]func() (string, func() map[string]any){
		"sessions": func() (string, func() map[string]any) {
			return old.streamed(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"do","_meta":{"progressToken":"p"}}}`)
		},
		"modern": func() (string, func() map[string]any) {
			meta := strings.Replace(fmt.Sprintf(modernMeta, `{"roots":{}}`), `"_meta":{`, `"_meta":{"progressToken":"p",`, 1)
			client := &raw{t: t, url: e.url, version: "2026-07-28"}
			return client.streamed(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"do",`+meta+`}}`, "Mcp-Method", "tools/call", wire.HeaderName, "do")
		},
	} {
		t.Run(name, func(t *testing.T) {
			kind, next := call()
			first, last := next(), next()
			(<-late)(mcp.Progress{Progress: 2}) // has no effect
			if text := toJSON(t, first); kind != "text/event-stream" || first["method"] != "notifications/progress" || !strings.Contains(text, `"progressToken":"p"`) || !strings.Contains(text, `one\ntwo`) {
				t.Errorf("%s: %s", kind, text)
			}
			if text := toJSON(t, last); last["id"] != 7.0 || !strings.Contains(text, `"structuredContent":{"n":12345678901234567`) {
				t.Errorf("the answer: %s", text)
			}
			if more := next(); more != nil {
				t.Errorf("after the answer: %v", more)
			}
		})
	}
}

// A question is sent in the response of its call. Its answer is accepted in any request of the same
// session, but only once.
func TestQuestionInTheResponse(t *testing.T) {
	c := catalogOf(offer("", "do"))
	c.do = func(ctx context.Context, call v1.Call) (v1.Result, error) {
		if len(call.Args) == 0 {
			return v1.Result{Status: v1.StatusComplete}, nil
		}
		d, decided, err := callctx.AskerOf(ctx)(ctx, v1.PendingToolInfo{ToolName: "do", Args: call.Args})
		return v1.Result{Status: v1.StatusComplete, Content: json.RawMessage(fmt.Sprintf(`"%t %s %t"`, d.Approved, d.Reason, decided))}, err
	}
	e := listen(t, server.New(c, server.Options{}), server.HTTPOptions{})
	client, other := &raw{t: t, url: e.url}, &raw{t: t, url: e.url}
	client.open(`{"elicitation":{}}`)
	other.open(`{"elicitation":{}}`)
	const call = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"do","arguments":{"n":1}}}`

	kind, next := client.streamed(call)
	question := next()
	if kind != "text/event-stream" || question["method"] != "elicitation/create" || !strings.Contains(toJSON(t, question), "requestedSchema") {
		t.Fatalf("%s: %v", kind, question)
	}
	answer := `{"jsonrpc":"2.0","id":` + toJSON(t, question["id"]) + `,"result":{"action":"accept","content":{"approve":true,"reason":"fine"}}}`
	other.post(answer)
	if status, _, text := client.post(answer); status != http.StatusAccepted || text != "" {
		t.Errorf("the answer got %d %s", status, text)
	}
	if got := toJSON(t, next()); !strings.Contains(got, "true fine true") {
		t.Errorf("got %s", got)
	}

	// A cancelled call withdraws its question.
	_, next = client.streamed(call)
	question = next()
	client.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
	if back := next(); back["method"] != "notifications/cancelled" || !strings.Contains(toJSON(t, back), `"requestId":`+toJSON(t, question["id"])) {
		t.Errorf("got %v", back)
	}
	if last := next(); last["error"] == nil {
		t.Errorf("got %v", last)
	}

	// An error of the client is an error of the call.
	_, next = client.streamed(call)
	question = next()
	client.post(`{"jsonrpc":"2.0","id":` + toJSON(t, question["id"]) + `,"error":{"code":-1,"message":"no window"}}`)
	if got := toJSON(t, next()); !strings.Contains(got, "false") {
		t.Errorf("got %s", got)
	}
}
