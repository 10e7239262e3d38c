package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/mcp/server"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// asking is a catalog of "do", which responds, "hang", which waits for release or the end of the call, and
// "ask", which asks the client.
func asking(release chan struct{}, began chan string) *catalog {
	c := catalogOf(offer("", "do"), offer("", "hang"), offer("", "ask"))
	c.do = func(ctx context.Context, call v1.Call) (v1.Result, error) {
		res := v1.Result{Status: v1.StatusComplete, Content: json.RawMessage(`{}`)}
		switch call.Tool {
		case "default/hang":
			began <- call.Principal
			select {
			case <-release:
			case <-ctx.Done():
			}
		case "default/ask":
			answers, err := mcp.PeerOf(ctx).Ask(ctx, map[string]mcp.InputRequest{"q": {Method: "elicitation/create", Params: json.RawMessage(`{"message":"m","requestedSchema":{"type":"object","properties":{}}}`)}})
			if err != nil {
				return v1.Result{}, &v1.ExecutionError{Tool: "ask", Phase: v1.PhaseExecute, Message: err.Error()}
			}
			res.Content = answers["q"]
		}
		return res, nil
	}
	return c
}

func (r wireResult) said() string {
	if r.Error != nil {
		return r.Error.Message
	}
	return string(r.Result)
}

func callOf(t *testing.T, c *wireClient, tool string) wireResult {
	return c.round(t.Context(), "tools/call", tool, `"name":"`+tool+`","arguments":{}`)
}

// Calls that wait for a person use no places that other calls need, and continue after the answer.
func TestWaitingCallsAreNotRunningCalls(t *testing.T) {
	const many = 30
	c := asking(nil, nil)
	e := listen(t, server.New(c, server.Options{Admission: admission.New(admission.Limits{MaxCalls: 2, MaxWaiting: many, MaxRequests: 2})}), server.HTTPOptions{})
	ask := e.wire(t, "modern", allCaps)
	states := map[string]string{}
	for range many {
		key, state := ready(t, ask, "ask", `{}`)
		states[state] = key
	}
	if got := callOf(t, ask, "ask").said(); !strings.Contains(got, "too many calls that wait for their clients at once") {
		t.Errorf("one more: %s", got)
	}
	for _, protocol := range []string{"modern", "sessions"} {
		if got := callOf(t, e.wire(t, protocol, "{}"), "do").said(); !strings.Contains(got, `"content"`) {
			t.Errorf("%s: another call: %s", protocol, got)
		}
	}
	for state, key := range states {
		if got := again(t, ask, "ask", `{}`, key, state).said(); !strings.Contains(got, "decline") {
			t.Errorf("after the answer: %s", got)
		}
	}
}

// A question to a client with a session keeps its HTTP request open.
func TestWaitingCallsOfSessions(t *testing.T) {
	c := asking(nil, nil)
	const many = 5
	e := listen(t, server.New(c, server.Options{Admission: admission.New(admission.Limits{MaxCalls: 1, MaxRequests: many})}), server.HTTPOptions{})
	asked, answer, done := make(chan struct{}, many), make(chan struct{}), make(chan string, many)
	for range many {
		w := e.wire(t, "sessions", allCaps)
		w.answer = func(string, json.RawMessage) string {
			asked <- struct{}{}
			<-answer
			return `{"action":"decline"}`
		}
		go func() { done <- callOf(t, w, "ask").said() }()
		<-asked
	}
	if got := callOf(t, e.wire(t, "modern", "{}"), "do").said(); !strings.Contains(got, `"content"`) {
		t.Errorf("another call: %s", got)
	}
	close(answer)
	for range many {
		if got := <-done; !strings.Contains(got, "decline") {
			t.Errorf("after the answer: %s", got)
		}
	}
}

// A principal that uses all it can get does not affect others.
func TestAFullShareHurtsItsOwnerAlone(t *testing.T) {
	release, began := make(chan struct{}), make(chan string, 16)
	s := server.New(asking(release, began), server.Options{Admission: admission.New(admission.Limits{MaxCalls: 8, MaxWaiting: 8, MaxRequests: 8, MaxStreams: 8})})
	e := listen(t, s, server.HTTPOptions{Tokens: tokens(t, "ann", "a", "bob", "b"), MaxSessions: 8})
	of := func(token string) []string { return []string{"Authorization", "Bearer " + token} }
	ann, bob := e.wire(t, "modern", allCaps, of("a")...), e.wire(t, "modern", allCaps, of("b")...)
	const share = 2
	t.Run("running calls", func(t *testing.T) {
		done := make(chan string, share)
		for range share {
			go func() { done <- callOf(t, ann, "hang").said() }()
			<-began
		}
		if got := callOf(t, ann, "do").said(); !strings.Contains(got, "too many calls by one principal at once") {
			t.Errorf("ann: %s", got)
		}
		if got := callOf(t, bob, "do").said(); !strings.Contains(got, `"content"`) {
			t.Errorf("bob: %s", got)
		}
		close(release)
		for range share {
			<-done
		}
	})
	t.Run("waiting calls", func(t *testing.T) {
		for range share {
			ready(t, ann, "ask", `{}`)
		}
		if got := callOf(t, ann, "ask").said(); !strings.Contains(got, "too many calls that wait for their clients by one principal at once") {
			t.Errorf("ann: %s", got)
		}
		ready(t, bob, "ask", `{}`)
		if got := callOf(t, ann, "do").said(); !strings.Contains(got, `"content"`) {
			t.Errorf("a call of ann that does not wait: %s", got)
		}
	})
	t.Run("sessions", func(t *testing.T) {
		begin := func(token string) string {
			res, text := send(t, "POST", e.url+"/mcp", initialize, of(token)...)
			if res.StatusCode != 200 {
				t.Fatalf("%s: %d %s", token, res.StatusCode, text)
			}
			return res.Header.Get("Mcp-Session-Id")
		}
		uses := func(token, session string) int {
			res, _ := send(t, "POST", e.url+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, append(of(token), "Mcp-Session-Id", session)...)
			return res.StatusCode
		}
		other, first := begin("b"), begin("a")
		for range share - 1 {
			begin("a")
		}
		last := begin("a") // exceeds ann's share
		if got := uses("a", first); got != 404 {
			t.Errorf("the oldest session of ann: %d", got)
		}
		if got := uses("b", other); got != 200 {
			t.Errorf("the session of bob, which is older: %d", got)
		}
		t.Run("streams", func(t *testing.T) {
			open := func(token, session string) *http.Response {
				req, err := http.NewRequestWithContext(t.Context(), "GET", e.url+"/mcp", nil)
				if err != nil {
					t.Fatal(err)
				}
				req.Header = http.Header{"Accept": {"text/event-stream"}, "Authorization": {"Bearer " + token}, "Mcp-Session-Id": {session}}
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { res.Body.Close() })
				return res
			}
			listens := func(token string) int {
				req, err := http.NewRequestWithContext(t.Context(), "POST", e.url+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
				if err != nil {
					t.Fatal(err)
				}
				req.Header = http.Header{"Accept": {"application/json, text/event-stream"}, "Content-Type": {"application/json"}, "Authorization": {"Bearer " + token}, "Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"subscriptions/listen"}}
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { res.Body.Close() })
				return res.StatusCode
			}
			if got := open("a", last).StatusCode; got != 200 {
				t.Fatal(got)
			}
			if got := listens("a"); got != 200 {
				t.Fatal(got)
			}
			if got := listens("a"); got != 503 {
				t.Errorf("ann: %d", got)
			}
			if got := listens("b"); got != 200 {
				t.Errorf("bob: %d", got)
			}
		})
	})
	t.Run("slow bodies", func(t *testing.T) {
		for range share {
			conn, err := net.Dial("tcp", strings.TrimPrefix(e.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer a\r\nContent-Type: application/json\r\nAccept: */*\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n")
			if _, err := conn.Read(make([]byte, 10)); err != nil { // it waits for the body
				t.Fatal(err)
			}
		}
		if res, text := send(t, "POST", e.url+"/mcp", listLegacy, of("a")...); res.StatusCode != 503 || !strings.Contains(text, "too many unread requests by one principal at once") {
			t.Errorf("ann: %d %s", res.StatusCode, text)
		}
		if got := callOf(t, bob, "do").said(); !strings.Contains(got, `"content"`) {
			t.Errorf("bob: %s", got)
		}
	})
}

// Without names, every caller may use the whole of each limit.
func TestCallersWithoutNamesHaveTheWhole(t *testing.T) {
	release, began := make(chan struct{}), make(chan string, 4)
	e := listen(t, server.New(asking(release, began), server.Options{Admission: admission.New(admission.Limits{MaxCalls: 4})}), server.HTTPOptions{})
	w := e.wire(t, "modern", "{}")
	done := make(chan string, 4)
	for range 4 {
		go func() { done <- callOf(t, w, "hang").said() }()
		<-began
	}
	if got := callOf(t, w, "do").said(); !strings.Contains(got, "too many calls at once") {
		t.Errorf("one more: %s", got)
	}
	close(release)
	for range 4 {
		if got := <-done; !strings.Contains(got, `"content"`) {
			t.Error(got)
		}
	}
}

func TestMemoryBudget(t *testing.T) {
	release, began := make(chan struct{}), make(chan string, 4)
	e := listen(t, server.New(asking(release, began), server.Options{Admission: admission.New(admission.Limits{MemoryBudget: 8 << 20})}), server.HTTPOptions{})
	heavy := func(objects int) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hang","arguments":{"a":[` + strings.Repeat(`{"i":1},`, objects) + `{}]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}}}`
	}
	headers := []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", wire.HeaderName, "hang", "Toolctl-Share", "forged"}
	if res, text := send(t, "POST", e.url+"/mcp", heavy(60_000), headers...); res.StatusCode != 503 || !strings.Contains(text, "decoding it needs more memory than the budget allows") {
		t.Errorf("one that never fits: %d %s", res.StatusCode, text)
	}
	done := make(chan int, 1)
	go func() {
		res, _ := send(t, "POST", e.url+"/mcp", heavy(10_000), headers...)
		done <- res.StatusCode
	}()
	<-began
	if res, text := send(t, "POST", e.url+"/mcp", heavy(10_000), headers...); res.StatusCode != 503 || res.Header.Get("Retry-After") == "" || !strings.Contains(text, "too much is being decoded at once") {
		t.Errorf("a second: %d %s", res.StatusCode, text)
	}
	if got := callOf(t, e.wire(t, "sessions", "{}"), "do").said(); !strings.Contains(got, `"content"`) {
		t.Errorf("an ordinary call: %s", got)
	}
	close(release)
	if got := <-done; got != 200 {
		t.Error(got)
	}
	if res, text := send(t, "POST", e.url+"/mcp", heavy(10_000), headers...); res.StatusCode != 200 {
		t.Errorf("after it: %d %s", res.StatusCode, text)
	}
}
