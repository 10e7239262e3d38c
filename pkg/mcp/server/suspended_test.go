package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/callctx"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/mcp/server"
)

const oneForm = `{"asks":[{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}]}`

// ready makes the first round of a call that asks, and returns the key of its question and its state.
func ready(t testing.TB, c *wireClient, tool, args string) (key, state string) {
	t.Helper()
	r := c.round(t.Context(), "tools/call", tool, `"name":"`+tool+`","arguments":`+args)
	var in struct {
		Asked map[string]json.RawMessage `json:"inputRequests"`
		State string                     `json:"requestState"`
	}
	if err := json.Unmarshal(r.Result, &in); err != nil || len(in.Asked) != 1 || in.State == "" {
		t.Fatalf("no question: %s %+v", r.Result, r.Error)
	}
	for key = range in.Asked {
	}
	return key, in.State
}

// again makes a later round of a call.
func again(t testing.TB, c *wireClient, tool, args, key, state string) wireResult {
	t.Helper()
	return c.round(t.Context(), "tools/call", tool, fmt.Sprintf(`"name":%q,"arguments":%s,"inputResponses":{%q:{"action":"decline"}},"requestState":%q`, tool, args, key, state))
}

// A state is valid only for the request, the principal and the round for which it was created.
func TestSealedState(t *testing.T) {
	for _, up := range []string{"older", "modern"} {
		t.Run(up+" server", func(t *testing.T) {
			_, _, e := newGateway(t, mcp.Options{}, child("up", up))
			c := e.wire(t, "modern", allCaps)
			key, state := ready(t, c, "ask", oneForm)
			flipped := []byte(state)
			flipped[len(flipped)/2] ^= 1
			for name, tc := range map[string]struct{ tool, args, state string }{
				"altered":            {"ask", oneForm, string(flipped)},
				"longer":             {"ask", oneForm, state + "A"},
				"cut":                {"ask", oneForm, state[:20]},
				"made up":            {"ask", oneForm, "bWFkZSB1cA"},
				"huge":               {"ask", oneForm, strings.Repeat("A", 5000)},
				"of another tool":    {"told", oneForm, state},
				"of other arguments": {"ask", strings.Replace(oneForm, `"m"`, `"n"`, 1), state},
				"of another request": {"ask", `{}`, state},
			} {
				if r := again(t, c, tc.tool, tc.args, key, tc.state); r.Error == nil || r.Error.Code != -32602 || !strings.Contains(r.Error.Message, "requestState") {
					t.Errorf("%s: %s %+v", name, r.Result, r.Error)
				}
			}
			// The order of keys and the white space do not matter.
			same := ` { "asks" : [ {"params":{"requestedSchema":{"properties":{},"type":"object"},"message":"m"},"method":"elicitation/create"} ] } `
			if got := again(t, c, "ask", same, key, state).text(t); got != `[{"action":"decline"}]` {
				t.Errorf("got %s", got)
			}
			if r := again(t, c, "ask", oneForm, key, state); r.Error == nil || r.Error.Code != -32602 || !strings.Contains(r.Error.Message, "ended") {
				t.Errorf("a state of a call that ended: %s %+v", r.Result, r.Error)
			}
		})
	}
}

func TestStateOfARoundBefore(t *testing.T) {
	_, _, e := newGateway(t, mcp.Options{}, child("up", "older"))
	c := e.wire(t, "modern", allCaps)
	key, first := ready(t, c, "ask", oneForm)
	// A round without the answer gets the question again, with a new state.
	r := c.round(t.Context(), "tools/call", "ask", fmt.Sprintf(`"name":"ask","arguments":%s,"inputResponses":{"other":{"action":"accept"}},"requestState":%q`, oneForm, first))
	var in struct {
		Type  string                     `json:"resultType"`
		Asked map[string]json.RawMessage `json:"inputRequests"`
		State string                     `json:"requestState"`
	}
	if json.Unmarshal(r.Result, &in) != nil || in.Type != "input_required" || in.Asked[key] == nil || in.State == first {
		t.Fatalf("%s %+v", r.Result, r.Error)
	}
	if r := again(t, c, "ask", oneForm, key, first); r.Error == nil || r.Error.Code != -32602 {
		t.Errorf("the state of the round before: %s", r.Result)
	}
	if got := again(t, c, "ask", oneForm, key, in.State).text(t); got != `[{"action":"decline"}]` {
		t.Errorf("got %s", got)
	}
}

// A call by call_tool asks its client as a direct call does, and only at the address at which it began.
func TestQuestionsOfCallTool(t *testing.T) {
	for _, up := range []string{"older", "modern"} {
		t.Run(up+" server", func(t *testing.T) {
			g, _, _ := newGateway(t, mcp.Options{}, child("up", up))
			in := map[string]bool{}
			for _, o := range g.offers {
				in[o.Name] = false
			}
			for _, name := range []string{"a", "b"} {
				g.parts = append(g.parts, server.Toolset{Name: name, Tools: in, Spec: v1.ToolsetSpec{Discovery: v1.DiscoverySearch}})
			}
			e := listen(t, server.New(g, server.Options{DrainTimeout: -1, Finder: new(finder)}), server.HTTPOptions{})
			wrapped := `{"name":"ask","arguments":` + oneForm + `}`
			c := e.wire(t, "modern", allCaps)
			at := func(path, state, key string) wireResult {
				c.url = e.url + path
				return again(t, c, "call_tool", wrapped, key, state)
			}
			c.url = e.url + "/mcp/a"
			key, state := ready(t, c, "call_tool", wrapped)
			for _, path := range []string{"/mcp/b", "/mcp"} {
				if r := at(path, state, key); r.Error == nil || r.Error.Code != -32602 {
					t.Errorf("%s: %s", path, r.Result)
				}
			}
			if got := at("/mcp/a", state, key).text(t); got != `[{"action":"decline"}]` {
				t.Errorf("got %s", got)
			}
			old := wireAt(t, e.url+"/mcp/a", "sessions", allCaps)
			old.answer = func(string, json.RawMessage) string { return `{"action":"decline"}` }
			if got := old.call(t.Context(), "call_tool", wrapped).text(t); got != `[{"action":"decline"}]` {
				t.Errorf("in a session: %s", got)
			}
			r := c.call(t.Context(), "call_tool", `{"name":"log","arguments":{"n":3}}`)
			if len(r.notes) != 3 {
				t.Errorf("reports of progress: %q", r.notes)
			}
		})
	}
}

// A round must have the same principal as the call.
func TestStateOfAnotherPrincipal(t *testing.T) {
	_, s, _ := newGateway(t, mcp.Options{}, child("up", "older"))
	e := listen(t, s, server.HTTPOptions{Tokens: tokens(t, "ann", "a", "bob", "b")})
	ann, bob := e.wire(t, "modern", allCaps, "Authorization", "Bearer a"), e.wire(t, "modern", allCaps, "Authorization", "Bearer b")
	key, state := ready(t, ann, "ask", oneForm)
	if r := again(t, bob, "ask", oneForm, key, state); r.Error == nil || r.Error.Code != -32602 {
		t.Errorf("bob goes on with ann's call: %s", r.Result)
	}
	if got := again(t, ann, "ask", oneForm, key, state).text(t); got != `[{"action":"decline"}]` {
		t.Errorf("got %s", got)
	}
}

// A call in several rounds is one call, and answers may come before questions.
func TestRoundsAreOneCall(t *testing.T) {
	for _, up := range []string{"older", "modern"} {
		g, _, e := newGateway(t, mcp.Options{}, child("up", up))
		var calls atomic.Int32
		g.before = func(context.Context, v1.Call) error { calls.Add(1); return nil }
		c := e.wire(t, "modern", allCaps)
		c.answer = func(string, json.RawMessage) string { return `{"action":"decline"}` }
		c.call(t.Context(), "ask", oneForm).text(t)
		if calls.Load() != 1 {
			t.Errorf("%s: %d calls", up, calls.Load())
		}
	}
	_, _, e := newGateway(t, mcp.Options{}, child("up", "modern"))
	c := e.wire(t, "modern", allCaps)
	r := c.round(t.Context(), "tools/call", "ask", `"name":"ask","arguments":`+oneForm+`,"inputResponses":{"q0":{"action":"decline"},"more":{"action":"accept"}}`)
	if got := r.text(t); got != `[{"action":"decline"}]` {
		t.Errorf("got %s", got)
	}
}

// A stopping server ends the calls that wait for their clients.
func TestStopWithAQuestionOpen(t *testing.T) {
	g, _, _ := newGateway(t, mcp.Options{}, child("up", "older"))
	e := listen(t, server.New(g, server.Options{DrainTimeout: time.Hour}), server.HTTPOptions{})
	ready(t, e.wire(t, "modern", allCaps), "ask", oneForm)
	// The end of the test waits for the server, which would wait for the call.
}

// A client with forms gets the approval request at once, in both protocol versions.
func TestApprovalByForm(t *testing.T) {
	info := v1.PendingToolInfo{Reason: v1.ReasonApproval, Message: `tool "told" needs approval by policy "p"`, ToolName: "told", Args: json.RawMessage(`{"amount":12345678901234567890,"key":"***"}`)}
	cases := map[string]struct {
		answer string
		want   v1.Decision
		ok     bool
	}{
		"yes":     {`{"action":"accept","content":{"approve":true,"reason":" fine "}}`, v1.Decision{Approved: true, By: "the client", Reason: "fine"}, true},
		"no":      {`{"action":"accept","content":{"approve":false,"reason":"too much"}}`, v1.Decision{By: "the client", Reason: "too much"}, true},
		"refused": {`{"action":"decline"}`, v1.Decision{By: "the client"}, true},
		"closed":  {`{"action":"cancel"}`, v1.Decision{}, false},
		"no form": {`{"action":"accept","content":{"approve":"yes"}}`, v1.Decision{}, false},
	}
	g, _, e := newGateway(t, mcp.Options{}, child("up", "older"))
	type outcome struct {
		d   v1.Decision
		ok  bool
		err error
	}
	var asker, got atomic.Value
	g.before = func(ctx context.Context, _ v1.Call) error {
		ask := callctx.AskerOf(ctx)
		asker.Store(ask != nil)
		if ask == nil {
			return nil
		}
		d, ok, err := ask(ctx, info)
		got.Store(outcome{d, ok, err})
		return nil
	}
	for _, protocol := range []string{"older", "modern"} {
		e.wire(t, protocol, `{"sampling":{}}`).call(t.Context(), "told", "{}").text(t)
		if asker.Load() != false {
			t.Errorf("%s: a client without forms is asked", protocol)
		}
		c := e.wire(t, protocol, `{"elicitation":{}}`)
		for name, tc := range cases {
			c.answer = func(method string, params json.RawMessage) string {
				for _, want := range []string{`"mode":"form"`, `"message":"toolctl asks: tool \"told\" needs approval by policy`, `\"amount\": 12345678901234567890`, `"approve":{"type":"boolean"`} {
					if !strings.Contains(string(params), want) {
						t.Errorf("%s %s holds no %s", method, params, want)
					}
				}
				return tc.answer
			}
			c.call(t.Context(), "told", "{}").text(t)
			if o := got.Load().(outcome); o.d.Approved != tc.want.Approved || o.d.By != tc.want.By || o.d.Reason != tc.want.Reason || o.ok != tc.ok || o.err != nil {
				t.Errorf("%s, %s: %+v", protocol, name, o)
			}
		}
		c.answer = func(string, json.RawMessage) string { return "error:no person" }
		if protocol == "older" { // a client of 2026-07-28 would only not come back
			c.call(t.Context(), "told", "{}").text(t)
			if o := got.Load().(outcome); o.ok || o.err != nil {
				t.Errorf("%s, a client that fails: %+v", protocol, o)
			}
		}
	}
}

// The time during which a person is asked does not count toward the server's time limit.
func TestTimeDoesNotRunWhileAPersonIsAsked(t *testing.T) {
	m := child("up", "older")
	m.Spec.TimeoutMS = 4000
	_, _, e := newGateway(t, mcp.Options{}, m)
	c := e.wire(t, "older", allCaps)
	c.answer = func(string, json.RawMessage) string {
		<-time.After(4500 * time.Millisecond) // longer than the server may take
		return `{"action":"decline"}`
	}
	if got := c.call(t.Context(), "ask", oneForm).text(t); got != `[{"action":"decline"}]` {
		t.Errorf("got %s", got)
	}
}

func TestServerThatHangsForAClientOfItsOwn(t *testing.T) {
	m := child("up", "older")
	m.Spec.TimeoutMS = 300
	_, _, e := newGateway(t, mcp.Options{}, m)
	for _, protocol := range []string{"older", "modern"} {
		if got := e.wire(t, protocol, allCaps).call(t.Context(), "hang", "{}").failure(t); !strings.Contains(got, "within 300ms") {
			t.Errorf("%s: %s", protocol, got)
		}
	}
}

// A panic during a question ends only its call.
func TestPanicUnderAQuestion(t *testing.T) {
	g, _, e := newGateway(t, mcp.Options{}, child("up", "older"))
	g.before = func(context.Context, v1.Call) error { panic(errors.New("boom")) }
	for _, protocol := range []string{"older", "modern"} {
		if got := e.wire(t, protocol, allCaps).call(t.Context(), "told", "{}").failure(t); !strings.Contains(got, "internal error") {
			t.Errorf("%s: %q", protocol, got)
		}
	}
}
