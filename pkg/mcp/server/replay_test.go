package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/mcp/server"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// sse is one event of a stream.
type sse struct{ id, retry, data string }

// eventsOf is a response whose events are read individually.
type eventsOf struct {
	t     testing.TB
	res   *http.Response
	lines *bufio.Scanner
}

// events sends a call, or resumes its stream after a last event.
func (c *raw) events(body, last string, headers ...string) *eventsOf {
	c.t.Helper()
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.url+"/mcp", strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Mcp-Protocol-Version", c.version)
	req.Header.Set("Mcp-Session-Id", c.session)
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { res.Body.Close() })
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 8<<20)
	return &eventsOf{c.t, res, lines}
}

// next returns the next event; false at the end of the response, which must be complete.
func (e *eventsOf) next() (ev sse, ok bool) {
	e.t.Helper()
	for e.lines.Scan() {
		name, value, _ := strings.Cut(e.lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "id":
			ev.id = value
		case "retry":
			ev.retry = value
		case "data":
			ev.data = value
		case "":
			return ev, true
		}
	}
	if err := e.lines.Err(); err != nil {
		e.t.Errorf("the response did not end as it should: %v", err)
	}
	return sse{}, false
}

// rest returns the data of all remaining events.
func (e *eventsOf) rest() (data []string) {
	e.t.Helper()
	for {
		ev, ok := e.next()
		if !ok {
			return data
		}
		if ev.data != "" {
			data = append(data, ev.data)
		}
	}
}

func (e *eventsOf) status() (int, string) {
	text, _ := io.ReadAll(e.res.Body)
	return e.res.StatusCode, string(text)
}

// waiting returns a catalog whose call reports progress and ends on a signal.
func waiting() (c *catalog, report chan mcp.Progress, let chan string) {
	c = catalogOf(offer("", "do"))
	report, let = make(chan mcp.Progress), make(chan string)
	progress := make(chan func(mcp.Progress), 16)
	c.report = func(p func(mcp.Progress)) { progress <- p }
	c.do = func(ctx context.Context, call v1.Call) (v1.Result, error) {
		tell := <-progress
		if len(call.Args) == 0 {
			return v1.Result{Status: v1.StatusComplete}, nil
		}
		for {
			select {
			case p := <-report:
				tell(p)
			case text := <-let:
				raw, err := json.Marshal(text)
				return v1.Result{Status: v1.StatusComplete, Content: raw}, err
			case <-ctx.Done():
				return v1.Result{}, ctx.Err()
			}
		}
	}
	return c, report, let
}

const slowCall = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"do","arguments":{"n":1},"_meta":{"progressToken":"p"}}}`

// A client that loses its connection during a call gets the missed events and the result when it
// reconnects, even repeatedly.
func TestCallIsResumed(t *testing.T) {
	c, report, let := waiting()
	e := listen(t, server.New(c, server.Options{StreamAfter: 50 * time.Millisecond}), server.HTTPOptions{})
	client := &raw{t: t, url: e.url}
	client.open(`{}`)

	first := client.events(slowCall, "")
	prime, _ := first.next() // it comes although the call sends nothing
	if kind := first.res.Header.Get("Content-Type"); kind != "text/event-stream" || prime.id == "" || prime.retry == "" || prime.data != "" {
		t.Fatalf("%s: %+v", kind, prime)
	}
	report <- mcp.Progress{Progress: 1}
	one, _ := first.next()
	if one.id == prime.id || !strings.Contains(one.data, `"progress":1`) {
		t.Fatalf("got %+v", one)
	}
	first.res.Body.Close() // the connection is lost
	for n := 2; n < 5; n++ {
		report <- mcp.Progress{Progress: float64(n)}
	}

	second := client.events("", one.id)
	for n := 2; n < 5; n++ {
		if ev, _ := second.next(); ev.id == "" || !strings.Contains(ev.data, fmt.Sprintf(`"progress":%d`, n)) {
			t.Errorf("got %+v", ev)
		}
	}
	let <- "done"
	rest := second.rest()
	if len(rest) != 1 || !strings.Contains(rest[0], `"id":7`) || !strings.Contains(rest[0], "done") {
		t.Errorf("got %q", rest)
	}
	if again := client.events("", prime.id).rest(); len(again) != 5 || again[4] != rest[0] {
		t.Errorf("the call has ended: got %q", again)
	}
}

// A stream has only one reader: the last to resume it.
func TestResumedStreamHasOneReader(t *testing.T) {
	c, report, let := waiting()
	e := listen(t, server.New(c, server.Options{StreamAfter: 50 * time.Millisecond}), server.HTTPOptions{})
	client := &raw{t: t, url: e.url}
	client.open(`{}`)
	first := client.events(slowCall, "")
	prime, _ := first.next()
	second := client.events("", prime.id)
	third := client.events("", prime.id)
	if left := second.rest(); left != nil {
		t.Errorf("got %q", left)
	}
	report <- mcp.Progress{Progress: 1}
	let <- "done"
	if got := third.rest(); len(got) != 2 {
		t.Errorf("got %q", got)
	}
	if left := first.rest(); left != nil {
		t.Errorf("got %q", left)
	}
}

// A stream can be resumed only in its session and by its principal.
func TestForeignStreamIsNotResumed(t *testing.T) {
	c, _, let := waiting()
	e := listen(t, server.New(c, server.Options{StreamAfter: 50 * time.Millisecond}), server.HTTPOptions{Tokens: tokens(t, "ann", "1", "bob", "2")})
	const ann, bob = "Bearer 1", "Bearer 2"
	open := func(token string) *raw {
		client := &raw{t: t, url: e.url}
		client.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`, "Authorization", token)
		client.version = "2025-11-25"
		client.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Authorization", token)
		return client
	}
	hers, hersToo, his := open(ann), open(ann), open(bob)
	stream := hers.events(slowCall, "", "Authorization", ann)
	prime, _ := stream.next()
	stolen := &raw{t: t, url: e.url, version: "2025-11-25", session: hers.session}
	for name, tc := range map[string]struct {
		client *raw
		token  string
		last   string
		status []int
	}{
		"her session, his token":         {stolen, bob, prime.id, []int{403, 404}},
		"his session":                    {his, bob, prime.id, []int{400}},
		"another session of hers":        {hersToo, ann, prime.id, []int{400}},
		"an event to come":               {hers, ann, prime.id + "9", []int{400}},
		"another stream":                 {hers, ann, "toolctl-99-0", []int{400}},
		"no number":                      {hers, ann, "toolctl-1-x", []int{400}},
		"not an event of this server":    {hers, ann, "whatever", []int{400}},
		"a session that is not there":    {&raw{t: t, url: e.url, version: "2025-11-25", session: "none"}, ann, prime.id, []int{404}},
		"her session, without any token": {stolen, "", prime.id, []int{401}},
	} {
		t.Run(name, func(t *testing.T) {
			status, text := tc.client.events("", tc.last, "Authorization", tc.token).status()
			for _, s := range tc.status {
				if s == status {
					return
				}
			}
			t.Errorf("got %d %s", status, text)
		})
	}
	let <- "done"
	if rest := stream.rest(); len(rest) != 1 {
		t.Errorf("her stream went on as %q", rest)
	}
}

// Notifications beyond the limit are dropped, but the result is not. A result without space is lost, and so
// are all events of a session that has ended.
func TestKeptEventsAreBounded(t *testing.T) {
	c, report, let := waiting()
	e := listen(t, server.New(c, server.Options{Admission: admission.New(admission.Limits{MemoryBudget: 4 << 20}), StreamAfter: 50 * time.Millisecond}), server.HTTPOptions{}) // 256 KiB of events, half of it for a session
	client := &raw{t: t, url: e.url}
	client.open(`{}`)
	stream := client.events(slowCall, "")
	prime, _ := stream.next()
	const many = 1000
	go func() {
		for n := range many {
			report <- mcp.Progress{Progress: float64(n)}
		}
		let <- "the answer"
	}()
	if all := stream.rest(); len(all) != many+1 {
		t.Errorf("%d events", len(all))
	}
	again := client.events("", prime.id).rest()
	if n := len(again); n < 10 || n > 256 || !strings.Contains(again[n-1], "the answer") || !strings.Contains(again[n-2], `"progress":999`) {
		t.Errorf("%d events, the last %q", n, again[max(0, n-2):])
	}

	stream = client.events(slowCall, "")
	large, _ := stream.next()
	let <- strings.Repeat("x", 200<<10)
	if all := stream.rest(); len(all) != 1 {
		t.Errorf("%d events", len(all))
	}
	if status, text := client.events("", large.id).status(); status != http.StatusBadRequest || !strings.Contains(text, "has expired") {
		t.Errorf("got %d %s", status, text)
	}

	req, err := http.NewRequest(http.MethodDelete, client.url+"/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Mcp-Session-Id", client.session)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if status, text := client.events("", prime.id).status(); status != http.StatusNotFound {
		t.Errorf("got %d %s", status, text)
	}
}

// Clients before 2025-11-25 get no event without data, but can still resume a stream.
func TestOlderClientResumes(t *testing.T) {
	c, report, let := waiting()
	e := listen(t, server.New(c, server.Options{StreamAfter: 50 * time.Millisecond}), server.HTTPOptions{})
	client := &raw{t: t, url: e.url}
	client.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`)
	client.version = "2025-06-18"
	client.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	go func() { report <- mcp.Progress{Progress: 1} }()
	stream := client.events(slowCall, "")
	first, _ := stream.next()
	if !strings.Contains(first.data, `"progress":1`) || first.id == "" {
		t.Fatalf("got %+v", first)
	}
	stream.res.Body.Close()
	second := client.events("", first.id)
	let <- "done"
	if rest := second.rest(); len(rest) != 1 || !strings.Contains(rest[0], "done") {
		t.Errorf("got %q", rest)
	}
}

// A call of 2026-07-28, which has no resumable streams, stays one document regardless of its duration.
func TestModernCallHasNoEventIDs(t *testing.T) {
	c, report, let := waiting()
	e := listen(t, server.New(c, server.Options{StreamAfter: 50 * time.Millisecond}), server.HTTPOptions{})
	client := &raw{t: t, url: e.url, version: "2026-07-28"}
	go func() {
		report <- mcp.Progress{Progress: 1}
		let <- "done"
	}()
	meta := strings.Replace(fmt.Sprintf(modernMeta, `{}`), `"_meta":{`, `"_meta":{"progressToken":"p",`, 1)
	stream := client.events(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"do","arguments":{"n":1},`+meta+`}}`, "", "Mcp-Method", "tools/call", wire.HeaderName, "do")
	for range 2 {
		if ev, ok := stream.next(); !ok || ev.id != "" || ev.retry != "" || ev.data == "" {
			t.Errorf("got %+v", ev)
		}
	}
}

// polling returns a server of the SDK that closes the stream of its response during a call, and continues
// when its client has reconnected.
func polling(t *testing.T, store sdk.EventStore) *v1.MCPServer {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: "poller", Version: "1"}, nil)
	back := make(chan struct{}, 16)
	sdk.AddTool(s, &sdk.Tool{Name: "poll"}, func(ctx context.Context, req *sdk.CallToolRequest, _ any) (*sdk.CallToolResult, any, error) {
		req.Extra.CloseSSEStream(sdk.CloseSSEStreamArgs{RetryAfter: 5 * time.Millisecond})
		if store == nil {
			return &sdk.CallToolResult{}, nil, nil
		}
		select {
		case <-back:
		case <-ctx.Done():
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "polled"}}}, nil, nil
	})
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{EventStore: store})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Last-Event-ID") != "" {
			back <- struct{}{}
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		web.Close()
		for ss := range s.Sessions() {
			ss.Close()
		}
	})
	m := v1.NewObject(v1.KindMCPServer).(*v1.MCPServer)
	m.Metadata = v1.Metadata{Name: "poller", Namespace: v1.DefaultNamespace}
	m.Spec.URL, m.Spec.ToolNames = web.URL, "bare"
	return m
}

// A server that makes its client poll makes the gateway poll, which makes its own client poll: the
// connection is closed, and the result comes on the next one.
func TestPollingReachesTheClient(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"poll","arguments":{}}}`
	initialize := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`
	for name, tc := range map[string]struct {
		store sdk.EventStore
		want  string
	}{
		"a server that keeps its events":         {sdk.NewMemoryEventStore(nil), "polled"},
		"a server that loses what it would send": {nil, `"isError":true`},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, e := newGateway(t, mcp.Options{}, polling(t, tc.store))
			client := &raw{t: t, url: e.url}
			client.post(initialize)
			client.version = "2025-11-25"
			client.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			stream := client.events(call, "")
			var last sse
			for {
				ev, ok := stream.next()
				if !ok {
					break
				}
				last = ev
				if ev.data != "" {
					t.Errorf("got %+v before the connection was closed", ev)
				}
			}
			if last.id == "" || last.retry != "5" {
				t.Fatalf("the last event was %+v", last)
			}
			if rest := client.events("", last.id).rest(); len(rest) != 1 || !strings.Contains(rest[0], tc.want) {
				t.Errorf("got %q", rest)
			}
		})
	}
	t.Run("the SDK's client", func(t *testing.T) {
		_, _, e := newGateway(t, mcp.Options{}, polling(t, sdk.NewMemoryEventStore(nil)))
		cs := e.client(t, "2025-11-25", nil)
		for range 3 {
			res, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "poll"})
			if err != nil || res.IsError {
				t.Fatalf("%+v, %v", res, err)
			}
		}
	})
	t.Run("a client of 2026-07-28 does not poll", func(t *testing.T) {
		_, _, e := newGateway(t, mcp.Options{}, polling(t, sdk.NewMemoryEventStore(nil)))
		res, err := e.client(t, "2026-07-28", nil).CallTool(t.Context(), &sdk.CallToolParams{Name: "poll"})
		if err != nil || res.IsError {
			t.Fatalf("%+v, %v", res, err)
		}
	})
}

// The stream of a call that is cancelled without a reader contains the call's end.
func TestCancelledWhileNobodyReads(t *testing.T) {
	c, _, _ := waiting()
	done := make(chan error, 1)
	do := c.do
	c.do = func(ctx context.Context, call v1.Call) (v1.Result, error) {
		res, err := do(ctx, call)
		if len(call.Args) > 0 {
			done <- err
		}
		return res, err
	}
	e := listen(t, server.New(c, server.Options{StreamAfter: 50 * time.Millisecond}), server.HTTPOptions{})
	client := &raw{t: t, url: e.url}
	client.open(`{}`)
	stream := client.events(slowCall, "")
	prime, _ := stream.next()
	stream.res.Body.Close()
	client.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
	if rest := client.events("", prime.id).rest(); len(rest) != 1 || !strings.Contains(rest[0], `"error"`) {
		t.Errorf("got %q", rest)
	}
}
