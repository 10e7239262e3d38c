package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/mcp/server"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// gateway is a catalog of the tools of real MCP servers.
type gateway struct {
	*mcp.Upstreams
	remote map[string]mcp.DiscoveredTool // by Offer.Name
	offers []server.Offer
	states []server.Upstream
	before func(ctx context.Context, call v1.Call) error // replaces policies; may be nil
	parts  []server.Toolset
}

func (g *gateway) Contents() server.Contents {
	return server.Contents{Tools: g.offers, Servers: g.states, Toolsets: g.parts}
}
func (g *gateway) Settle(context.Context, string) {}

func (g *gateway) Call(ctx context.Context, call v1.Call, progress func(mcp.Progress)) (v1.Result, error) {
	if g.before != nil {
		if err := g.before(ctx, call); err != nil {
			return v1.Result{}, err
		}
	}
	if progress != nil {
		ctx = mcp.WithProgress(ctx, func(p mcp.Progress) { progress(p) })
	}
	t := g.remote[call.Tool].Tool
	return g.Upstreams.Call(ctx, v1.Key{Kind: v1.KindMCPServer, Namespace: t.Namespace(), Name: t.Spec.MCP.Server}, t.Spec.MCP.Tool, call.Args, false)
}

// newGateway starts servers, and a server in front of them over HTTP.
func newGateway(t testing.TB, o mcp.Options, servers ...*v1.MCPServer) (*gateway, *server.Server, *endpoint) {
	t.Helper()
	g := &gateway{remote: map[string]mcp.DiscoveredTool{}}
	var s *server.Server
	o.OnUpdate = func(_ v1.Key, uri string) { s.ResourceUpdated(uri) }
	o.AllowPrivateNetwork = true
	g.Upstreams = mcp.NewUpstreams(servers, o)
	t.Cleanup(func() { g.Upstreams.Close() })
	for _, state := range g.Discover(t.Context()) {
		if !state.Ready {
			t.Fatalf("%s: %s", state.Key.Name, state.Reason)
		}
		g.states = append(g.states, server.Upstream{ServerState: state, Bare: true})
		for _, d := range state.Tools {
			name := state.Key.Name + "/" + d.Remote
			g.remote[name] = d
			g.offers = append(g.offers, server.Offer{Tool: d.Tool, Name: name})
		}
	}
	s = server.New(g, server.Options{DrainTimeout: -1})
	return g, s, listen(t, s, server.HTTPOptions{})
}

// wireClient is an MCP client over HTTP that reads and writes JSON itself.
type wireClient struct {
	t       testing.TB
	url     string
	modern  bool
	lists   bool // listen asks for changes of the list of resources; modern
	caps    string
	level   string // of log messages that calls ask for; modern
	headers []string
	// answer returns the client's answer to a request; an error answer begins with "error:".
	answer func(method string, params json.RawMessage) string

	http    *http.Client
	session string
	mu      sync.Mutex
	ids     int
	notes   []string      // unchanged notifications
	noted   chan struct{} // holds one element after a notification
}

// wireResult is the outcome of a request.
type wireResult struct {
	Result json.RawMessage
	Error  *struct {
		Code    int64           `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	rounds int
	notes  []string // notifications in its streams before the result
}

func (e *endpoint) wire(t testing.TB, protocol, caps string, headers ...string) *wireClient {
	t.Helper()
	return wireAt(t, e.url+"/mcp", protocol, caps, headers...)
}

func wireAt(t testing.TB, url, protocol, caps string, headers ...string) *wireClient {
	t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	c := &wireClient{t: t, url: url, modern: protocol == "modern", caps: caps, headers: headers, http: &http.Client{Transport: transport}, noted: make(chan struct{}, 1)}
	c.answer = func(method string, _ json.RawMessage) string { return "error:not expected: " + method }
	t.Cleanup(transport.CloseIdleConnections)
	if !c.modern {
		resp := c.post(t.Context(), `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"wire","version":"1"},"capabilities":`+caps+`}}`, "initialize", "")
		c.session = resp.Header.Get("Mcp-Session-Id")
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		t.Cleanup(c.end)
	}
	return c
}

// end ends the session.
func (c *wireClient) end() {
	if c.session == "" {
		return
	}
	req, _ := http.NewRequest(http.MethodDelete, c.url, nil)
	req.Header.Set("Mcp-Session-Id", c.session)
	if resp, err := c.http.Do(req); err == nil {
		resp.Body.Close()
	}
	c.session = ""
}

func (c *wireClient) post(ctx context.Context, body, method, name string) *http.Response {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	if c.modern {
		req.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		req.Header.Set("Mcp-Method", method)
		if name != "" {
			req.Header.Set(wire.HeaderName, name)
		}
	} else {
		req.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	}
	for i := 0; i < len(c.headers); i += 2 {
		req.Header.Set(c.headers[i], c.headers[i+1])
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() == nil {
			c.t.Error(err)
		}
		return &http.Response{Body: http.NoBody, Header: http.Header{}}
	}
	return resp
}

// send sends a message that needs no response.
func (c *wireClient) send(body string) {
	resp := c.post(context.Background(), body, "", "")
	resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted {
		c.t.Errorf("%s: status %d", body, resp.StatusCode)
	}
}

// call calls a tool and answers its questions.
func (c *wireClient) call(ctx context.Context, tool, args string) wireResult {
	return c.request(ctx, "tools/call", tool, `"name":"`+tool+`","arguments":`+args)
}

// request makes a request in as many rounds as necessary.
func (c *wireClient) request(ctx context.Context, method, name, params string) wireResult {
	more := ""
	var notes []string
	for n := 1; ; n++ {
		r := c.round(ctx, method, name, params+more)
		r.rounds = n
		r.notes = append(notes, r.notes...)
		notes = r.notes
		var in struct {
			Type  string                  `json:"resultType"`
			Asked map[string]wireQuestion `json:"inputRequests"`
			State string                  `json:"requestState"`
		}
		_ = json.Unmarshal(r.Result, &in)
		if in.Type != "input_required" || n > 20 {
			return r
		}
		answers := map[string]json.RawMessage{}
		for key, q := range in.Asked {
			if a := c.answer(q.Method, q.Params); !strings.HasPrefix(a, "error:") {
				answers[key] = json.RawMessage(a)
			}
		}
		raw, err := json.Marshal(answers)
		if err != nil {
			c.t.Fatal(err)
		}
		more = fmt.Sprintf(`,"inputResponses":%s,"requestState":%q`, raw, in.State)
	}
}

// round makes one request.
func (c *wireClient) round(ctx context.Context, method, name, params string) (r wireResult) {
	c.mu.Lock()
	c.ids++
	id := strconv.Itoa(c.ids)
	c.mu.Unlock()
	meta := `"progressToken":"p` + id + `"`
	if c.modern {
		meta += `,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + c.caps
		if c.level != "" {
			meta += `,"io.modelcontextprotocol/logLevel":"` + c.level + `"`
		}
	}
	resp := c.post(ctx, `{"jsonrpc":"2.0","id":`+id+`,"method":"`+method+`","params":{`+params+`,"_meta":{`+meta+`}}}`, method, name)
	defer resp.Body.Close()
	done := false
	c.read(resp, func(m wireFrame) bool {
		switch {
		case m.Method == "":
			r.Result, r.Error = m.Result, m.Error
			done = true
		case m.ID != nil:
			if c.modern {
				c.t.Errorf("a request in the stream of a response: %s", m.Method)
			}
			go c.respond(m, c.answer)
		default:
			r.notes = append(r.notes, m.raw)
		}
		return !done
	})
	if !done && ctx.Err() == nil {
		c.t.Errorf("%s %s: no answer; status %d", method, name, resp.StatusCode)
	}
	return r
}

type wireFrame struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	wireResult
	raw string
}

// read reads the messages of a response until f returns false.
func (c *wireClient) read(resp *http.Response, f func(wireFrame) bool) {
	one := func(data []byte) bool {
		var m wireFrame
		if err := json.Unmarshal(data, &m); err != nil {
			c.t.Errorf("%q: %v", data, err)
			return false
		}
		m.raw = string(bytes.TrimSpace(data))
		return f(m)
	}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		if data, _ := io.ReadAll(resp.Body); len(bytes.TrimSpace(data)) > 0 {
			one(data)
		}
		return
	}
	in := bufio.NewScanner(resp.Body)
	in.Buffer(nil, 1<<22)
	for in.Scan() {
		if data, ok := bytes.CutPrefix(in.Bytes(), []byte("data: ")); ok && !one(data) {
			return
		}
	}
}

// respond answers a request of the server with answer, the function that was set when the request arrived.
func (c *wireClient) respond(m wireFrame, answer func(string, json.RawMessage) string) {
	a := answer(m.Method, m.Params)
	if text, ok := strings.CutPrefix(a, "error:"); ok {
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":%q}}`, m.ID, text))
		return
	}
	c.send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + a + `}`)
}

// listen opens the stream for messages outside of requests, which ends with ctx. It returns once the stream
// is open.
func (c *wireClient) listen(ctx context.Context, uris ...string) {
	c.t.Helper()
	var resp *http.Response
	if c.modern {
		raw, _ := json.Marshal(uris)
		resp = c.post(ctx, `{"jsonrpc":"2.0","id":"listen","method":"subscriptions/listen","params":{"notifications":{"resourcesListChanged":`+strconv.FormatBool(c.lists)+`,"resourceSubscriptions":`+string(raw)+`},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, "subscriptions/listen", "")
	} else {
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
		req.Header.Set("Mcp-Session-Id", c.session)
		req.Header.Set("Accept", "text/event-stream")
		var err error
		if resp, err = c.http.Do(req); err != nil {
			c.t.Fatal(err)
		}
	}
	ended := make(chan struct{})
	c.t.Cleanup(func() { <-ended })
	go func() {
		defer close(ended)
		defer resp.Body.Close()
		c.read(resp, func(m wireFrame) bool {
			if m.ID != nil && m.Method != "" {
				go c.respond(m, c.answer)
				return true
			}
			c.mu.Lock()
			c.notes = append(c.notes, m.raw)
			c.mu.Unlock()
			select {
			case c.noted <- struct{}{}:
			default:
			}
			return true
		})
	}()
}

// await returns once a notification with a text has arrived in the stream of listen.
func (c *wireClient) await(text string) string {
	c.t.Helper()
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	for {
		c.mu.Lock()
		for _, n := range c.notes {
			if strings.Contains(n, text) {
				c.mu.Unlock()
				return n
			}
		}
		c.mu.Unlock()
		select {
		case <-c.noted:
		case <-late.C:
			c.t.Fatalf("no notification with %q: %q", text, c.notes)
		}
	}
}

// text returns the only text of a result.
func (r wireResult) text(t testing.TB) string {
	t.Helper()
	var res struct {
		Content []struct{ Text string }
		IsError bool
	}
	if r.Error != nil || json.Unmarshal(r.Result, &res) != nil || len(res.Content) != 1 || res.IsError {
		t.Fatalf("no text: %s %+v", r.Result, r.Error)
	}
	return res.Content[0].Text
}

// failure returns the text of a result with isError.
func (r wireResult) failure(t testing.TB) string {
	t.Helper()
	var res struct {
		Content []struct{ Text string }
		IsError bool
	}
	if r.Error != nil || json.Unmarshal(r.Result, &res) != nil || !res.IsError {
		t.Fatalf("no failure: %s %+v", r.Result, r.Error)
	}
	return res.Content[0].Text
}
