package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp/server"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// raw is a client that sends raw messages.
type raw struct {
	t       testing.TB
	url     string
	version string
	session string
}

func (c *raw) post(body string, headers ...string) (status int, kind, answer string) {
	c.t.Helper()
	req, err := http.NewRequest(http.MethodPost, c.url+"/mcp", strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.version != "" {
		req.Header.Set("Mcp-Protocol-Version", c.version)
	}
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Error(err)
		return 0, "", ""
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Error(err)
	}
	if id := res.Header.Get("Mcp-Session-Id"); id != "" {
		c.session = id
	}
	return res.StatusCode, res.Header.Get("Content-Type"), string(text)
}

// open begins a session with the given capabilities, and makes one call.
func (c *raw) open(capabilities string) {
	c.t.Helper()
	c.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` + capabilities + `,"clientInfo":{"name":"raw","version":"1"}}}`)
	c.version = "2025-11-25"
	c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if status, _, text := c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"do"}}`); status != 200 || !strings.Contains(text, `"result"`) {
		c.t.Fatal(status, text)
	}
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"},"io.modelcontextprotocol/clientCapabilities":%s}`

// A call whose result comes first gets it as one JSON document, whatever its client's capabilities.
func TestAnswerIsOneDocument(t *testing.T) {
	c := catalogOf(offer("", "do"))
	c.do = func(_ context.Context, call v1.Call) (v1.Result, error) {
		if strings.Contains(string(call.Args), "ask") {
			return v1.Result{}, &v1.MCPError{Server: "s", Code: -32021, Message: "needs sampling"}
		}
		if strings.Contains(string(call.Args), "bad") {
			return v1.Result{}, &v1.PolicyError{Tool: "do", Policy: "p", Rule: "r", Message: "no"}
		}
		if len(call.Args) == 0 {
			call.Args = json.RawMessage("{}")
		}
		return v1.Result{Status: v1.StatusComplete, Content: json.RawMessage(`{"says":"ok","args":` + string(call.Args) + `}`)}, nil
	}
	e := listen(t, server.New(c, server.Options{Name: "us", Version: "3"}), server.HTTPOptions{})
	const plain = "application/json"
	old := &raw{t: t, url: e.url}
	old.open(`{}`)
	asking := &raw{t: t, url: e.url}
	asking.open(`{"elicitation":{}}`)
	modern := &raw{t: t, url: e.url, version: "2026-07-28"}
	meta := fmt.Sprintf(modernMeta, `{}`)
	named := []string{"Mcp-Method", "tools/call", wire.HeaderName, "do"}
	call := func(params string) string {
		return `{"jsonrpc":"2.0","id":"a b","method":"tools/call","params":{` + params + `}}`
	}
	for _, tc := range []struct {
		name    string
		client  *raw
		body    string
		headers []string
		status  int
		kind    string
		has     []string
	}{
		{"a session", old, call(`"name":"do","arguments":{"n":12345678901234567890}`), nil, 200, plain, []string{`{"jsonrpc":"2.0","id":"a b","result":{`, `"text":"{\"says\":\"ok\",\"args\":{\"n\":12345678901234567890}}"`}},
		{"an error of the call", old, call(`"name":"do","arguments":{"bad":1}`), nil, 200, plain, []string{`"isError":true`, "no"}},
		{"an unknown tool", old, call(`"name":"other"`), nil, 200, plain, []string{`"error":{"code":-32602,"message":"unknown tool \"other\""}`}},
		{"an unknown tool whose name is cut between two characters", old, call(`"name":"x` + strings.Repeat("é", 60) + `"`), nil, 200, plain, []string{`"message":"unknown tool \"x` + strings.Repeat("é", 49) + `…\""`}},
		{"progress", old, call(`"name":"do","_meta":{"progressToken":1}`), nil, 200, plain, []string{`"result"`}},
		{"a name of another case", old, call(`"Name":"do"`), nil, 200, plain, []string{`"error"`}},
		{"a client that can be asked", asking, call(`"name":"do"`), nil, 200, plain, []string{`"result"`}},
		{"another version", old, call(`"name":"do"`), []string{"Mcp-Protocol-Version", "2025-06-18"}, 200, plain, []string{`"result"`}},
		{"another session", old, call(`"name":"do"`), []string{"Mcp-Session-Id", "none"}, 404, "text/plain; charset=utf-8", []string{"session not found"}},
		{"no stream accepted", old, call(`"name":"do"`), []string{"Accept", "application/json"}, 406, "text/plain; charset=utf-8", []string{"Accept header must name"}},
		{"modern", modern, call(`"name":"do",` + meta), named, 200, plain, []string{`"resultType":"complete"`, `"io.modelcontextprotocol/serverInfo":{"name":"us","version":"3"}`}},
		{"modern, an unknown tool", modern, call(`"name":"other",` + meta), []string{"Mcp-Method", "tools/call", wire.HeaderName, "other"}, 400, plain, []string{"-32602"}},
		{"modern, what the client cannot do", modern, call(`"name":"do","arguments":{"ask":1},` + meta), named, 400, plain, []string{"-32021"}},
		{"modern, another name in the header", modern, call(`"name":"do",` + meta), []string{"Mcp-Method", "tools/call", wire.HeaderName, "other"}, 400, plain, []string{wire.HeaderName}},
		{"modern, no meta", modern, call(`"name":"do"`), named, 400, plain, []string{`"error"`}},
		{"modern, a client that can be asked", modern, call(`"name":"do",` + fmt.Sprintf(modernMeta, `{"elicitation":{}}`)), named, 200, plain, []string{`"result"`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			status, kind, text := tc.client.post(tc.body, tc.headers...)
			if status != tc.status || kind != tc.kind {
				t.Errorf("got %d %s: %s", status, kind, text)
			}
			for _, has := range tc.has {
				if !strings.Contains(text, has) {
					t.Errorf("got %s, expected %s", text, has)
				}
			}
		})
	}
	// What the SDK is left to answer, here for a parameter that the protocol does not have, says the same.
	for name, res := range map[string]v1.Result{
		"parts": {Status: v1.StatusComplete, Content: json.RawMessage(` {"n": [1, 2]} `), Structured: true, Meta: json.RawMessage(`{"k":"v"}`), Parts: []v1.Part{
			{Type: v1.PartText, Text: "a \"<b>\"\n\u2028"}, {Type: v1.PartText, Text: "c", Annotations: json.RawMessage(`{"priority":1}`)},
			{Type: v1.PartImage, Data: "aGk=", MIMEType: "image/png"}, {Type: v1.PartResource, Resource: &v1.ResourceContents{URI: "u:x", Text: "t"}}}},
		"nothing": {Status: v1.StatusComplete},
		"failed":  {Status: v1.StatusFailed, Parts: []v1.Part{{Type: v1.PartText, Text: "no"}}},
	} {
		c.do = func(context.Context, v1.Call) (v1.Result, error) { return res, nil }
		var answers [2]any
		for i, params := range []string{`"name":"do"`, `"name":"do","other":1`} {
			_, kind, text := old.post(call(params))
			if kind != plain {
				t.Errorf("%s: %s", params, kind)
			}
			text = text[strings.Index(text, "{"):]
			if err := json.Unmarshal([]byte(strings.TrimSpace(text)), &answers[i]); err != nil {
				t.Fatalf("%s: %v: %s", name, err, text)
			}
		}
		if diff := cmp.Diff(answers[1], answers[0]); diff != "" {
			t.Errorf("%s: -SDK +ours\n%s", name, diff)
		}
	}
}

// A call ends when its client cancels it or ends the session, but not when the connection breaks. IDs are
// unique within a session.
func TestCallEnds(t *testing.T) {
	c := catalogOf(offer("", "do"))
	began, ended := make(chan struct{}), make(chan error)
	c.do = func(ctx context.Context, call v1.Call) (v1.Result, error) {
		if !strings.Contains(string(call.Args), "wait") {
			return v1.Result{Status: v1.StatusComplete}, nil
		}
		began <- struct{}{}
		<-ctx.Done()
		ended <- ctx.Err()
		return v1.Result{}, ctx.Err()
	}
	e := listen(t, server.New(c, server.Options{}), server.HTTPOptions{})
	client := &raw{t: t, url: e.url}
	const call = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"do","arguments":{"wait":true}}}`
	for _, tc := range []struct {
		name string
		end  func()
	}{
		{"cancelled", func() {
			client.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}`) // another
			client.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
		}},
		{"the session ends", func() {
			req, err := http.NewRequest(http.MethodDelete, e.url+"/mcp", nil)
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("Mcp-Session-Id", client.session)
			if res, err := http.DefaultClient.Do(req); err == nil {
				res.Body.Close()
			}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			client.version, client.session = "", ""
			client.open(`{}`)
			answered := make(chan string, 1)
			go func() {
				_, kind, text := client.post(call)
				answered <- kind + " " + text
			}()
			<-began
			if status, _, text := client.post(call); status != 400 || !strings.Contains(text, "duplicate in-flight request ID 7") {
				t.Errorf("got %d %s", status, text)
			}
			tc.end()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if text := <-answered; !strings.HasPrefix(text, `application/json {"jsonrpc":"2.0","id":7,"error":`) {
				t.Errorf("got %s", text)
			}
		})
	}
}
