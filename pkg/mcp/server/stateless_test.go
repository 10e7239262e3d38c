package server_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/mcp/server"
)

// TestStateless checks that requests of 2025-11-25 without a session are answered individually, and that
// methods which need a session are refused according to the specification.
func TestStateless(t *testing.T) {
	a := upstream("default", "a", true)
	a.Prompts = []mcp.Prompt{{Name: "greet"}}
	a.Resources = []mcp.Resource{{URI: "file:///x", Name: "x"}}
	l := &library{catalog: catalogOf(offer("", "one")), servers: []server.Upstream{a}}
	e := listen(t, server.New(l, server.Options{}), server.HTTPOptions{Stateless: true})
	request := func(method, params string) string {
		return `{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":` + params + `}`
	}
	legacy := []string{"Mcp-Protocol-Version", "2025-11-25"}
	for _, tc := range []struct {
		name    string
		method  string // default: POST
		body    string
		headers []string
		status  int
		want    []string // in the body
		not     []string // not in the body
	}{
		{name: "initialize", body: initialize, status: 200, want: []string{`"protocolVersion":"2025-11-25"`, `"tools":{}`, `"prompts":{}`, `"resources":{}`}, not: []string{"listChanged", "subscribe", "logging"}},
		{name: "initialize of an older version", body: strings.Replace(initialize, "2025-11-25", "2025-03-26", 1), status: 200, want: []string{`"protocolVersion":"2025-03-26"`}},
		{name: "initialized", body: `{"jsonrpc":"2.0","method":"notifications/initialized"}`, headers: legacy, status: 202},
		{name: "ping", body: request("ping", "{}"), headers: legacy, status: 200, want: []string{`"id":7`, `"result":{}`}},
		{name: "tools/list", body: request("tools/list", "{}"), headers: legacy, status: 200, want: []string{`"name":"one"`}, not: []string{"resultType"}},
		{name: "tools/list without the version", body: request("tools/list", "{}"), status: 200, want: []string{`"name":"one"`}},
		{name: "tools/call", body: request("tools/call", `{"name":"one","arguments":{}}`), headers: legacy, status: 200, want: []string{`"id":7`, `default/one`}, not: []string{"resultType"}},
		{name: "tools/call without the version", body: request("tools/call", `{"name":"one"}`), status: 200, want: []string{`default/one`}},
		{name: "an unknown tool", body: request("tools/call", `{"name":"no"}`), headers: legacy, status: 200, want: []string{`"code":-32602`}},
		{name: "an unknown method", body: request("tools/cal", `{}`), headers: legacy, status: 200, want: []string{`"id":7`, `"code":-32601`}},
		{name: "what a client of another version says it can", body: request("tools/call", `{"name":"one","_meta":{"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}`), headers: legacy, status: 200, want: []string{`default/one`}},
		{name: "prompts/get", body: request("prompts/get", `{"name":"a__greet"}`), headers: legacy, status: 200, want: []string{`"text":"hi"`}},
		{name: "resources/read", body: request("resources/read", `{"uri":"file:///x"}`), headers: legacy, status: 200, want: []string{`"text":"A"`}},
		{name: "resources/subscribe", body: request("resources/subscribe", `{"uri":"file:///x"}`), headers: legacy, status: 200, want: []string{`"code":-32601`}},
		{name: "resources/unsubscribe", body: request("resources/unsubscribe", `{"uri":"file:///x"}`), headers: legacy, status: 200, want: []string{`"code":-32601`}},
		{name: "logging/setLevel", body: request("logging/setLevel", `{"level":"info"}`), headers: legacy, status: 200, want: []string{`"code":-32601`}},
		{name: "roots", body: `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`, headers: legacy, status: 202},
		{name: "cancelled", body: `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`, headers: legacy, status: 202},
		{name: "GET", method: "GET", headers: legacy, status: 405},
		{name: "DELETE", method: "DELETE", headers: legacy, status: 405},
		{name: "a session from before", body: request("tools/list", "{}"), headers: append([]string{"Mcp-Session-Id", "x"}, legacy...), status: 404},
		{name: "a call in a session from before", body: request("tools/call", `{"name":"one"}`), headers: append([]string{"Mcp-Session-Id", "x"}, legacy...), status: 404},
		{name: "2026-07-28", body: listModern, headers: []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list"}, status: 200, want: []string{`"resultType":"complete"`}},
		{name: "2026-07-28 without its header", body: listModern, status: 400, want: []string{"-32020"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			method := tc.method
			if method == "" {
				method = http.MethodPost
			}
			res, body := send(t, method, e.url+"/mcp", tc.body, tc.headers...)
			if res.StatusCode != tc.status {
				t.Errorf("got %d %s, want %d", res.StatusCode, body, tc.status)
			}
			for _, text := range tc.want {
				if !strings.Contains(body, text) {
					t.Errorf("%q is not in %s", text, body)
				}
			}
			for _, text := range tc.not {
				if strings.Contains(body, text) {
					t.Errorf("%q is in %s", text, body)
				}
			}
			if id := res.Header.Get("Mcp-Session-Id"); id != "" {
				t.Errorf("it has the session %q", id)
			}
			if tc.status == http.StatusMethodNotAllowed && res.Header.Get("Allow") != "POST" {
				t.Errorf("Allow: %q", res.Header.Get("Allow"))
			}
		})
	}
	if cs := e.client(t, versions["sessions"], nil); cs.ID() != "" { // the SDK's client works, too
		t.Errorf("it has the session %q", cs.ID())
	} else if list, err := cs.ListTools(t.Context(), nil); err != nil || len(list.Tools) != 1 {
		t.Errorf("got %+v, %v", list, err)
	}
}

// TestStatelessIsGoverned checks that a request without a session belongs to its principal: policies count
// in the principal's session, and the shares of calls apply.
func TestStatelessIsGoverned(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	release, began := make(chan struct{}), make(chan string)
	c := asking(release, began)
	do := c.do
	c.do = func(ctx context.Context, call v1.Call) (v1.Result, error) {
		mu.Lock()
		seen = append(seen, call.Session+" "+call.Principal)
		mu.Unlock()
		return do(ctx, call)
	}
	e := listen(t, server.New(c, server.Options{Admission: admission.New(admission.Limits{MaxCalls: 1})}),
		server.HTTPOptions{Stateless: true, Tokens: tokens(t, "ann", "s3cret", "bob", "other")})
	call := func(token, tool, meta string) (reply, string) {
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `"` + meta + `}}`
		return send(t, http.MethodPost, e.url+"/mcp", body, "Mcp-Protocol-Version", "2025-11-25", "Authorization", "Bearer "+token)
	}
	for _, who := range []string{"s3cret", "s3cret", "other"} {
		if res, body := call(who, "do", ""); res.StatusCode != 200 || strings.Contains(body, `"error"`) {
			t.Errorf("got %d %s", res.StatusCode, body)
		}
	}
	call("s3cret", "do", `,"_meta":{"toolctl.dev/session":"x"}`)
	if want := []string{"principal-ann ann", "principal-ann ann", "principal-bob bob", "principal-ann/x ann"}; !slices.Equal(seen, want) {
		t.Errorf("calls were of %q, want %q", seen, want)
	}
	if res, _ := call("wrong", "do", ""); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("an unknown token gets %d", res.StatusCode)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		call("s3cret", "hang", "")
	}()
	select {
	case <-began:
	case <-done:
		t.Fatal("the call did not begin")
	}
	if res, body := call("other", "do", ""); res.StatusCode == 200 && !strings.Contains(body, `"code":-32000`) {
		t.Errorf("a call beyond the limit gets %d %s", res.StatusCode, body)
	}
	close(release)
	<-done
	if res, body := call("s3cret", "ask", ""); res.StatusCode != 200 || !strings.Contains(body, "internal error") && !strings.Contains(body, "isError") {
		t.Errorf("a call that asks gets %d %s", res.StatusCode, body)
	}
}
