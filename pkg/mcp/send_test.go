package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
)

// recorder is an MCP server over HTTP that records its requests, and answers tools/call with do.
type recorder struct {
	url string
	do  func(w http.ResponseWriter, r *http.Request, id json.RawMessage)
	get http.HandlerFunc // answers a request to resume a stream

	mu    sync.Mutex
	ids   []string // of the calls
	lists int
	got   []string // every other message
	more  chan struct{}
}

func record(t *testing.T, do func(http.ResponseWriter, *http.Request, json.RawMessage)) *recorder {
	t.Helper()
	rec := &recorder{do: do, more: make(chan struct{}, 100)}
	h := httptest.NewServer(rec)
	t.Cleanup(func() { h.CloseClientConnections(); h.Close() })
	rec.url = h.URL
	return rec
}

func (rec *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && r.Header.Get("Last-Event-ID") != "" {
		rec.get(w, r)
		return
	}
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var m struct {
		ID     json.RawMessage
		Method string
	}
	if json.Unmarshal(body, &m) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	answer := func(result string) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}
	rec.mu.Lock()
	defer func() { rec.more <- struct{}{} }()
	switch m.Method {
	case "initialize":
		rec.mu.Unlock()
		w.Header().Set("Mcp-Session-Id", "s1")
		answer(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"recorder","version":"1"}}`)
	case "tools/list":
		rec.lists++
		second := fmt.Sprintf("t%d", rec.lists) // each list is different
		rec.mu.Unlock()
		answer(`{"tools":[{"name":"t","inputSchema":{"type":"object"}},{"name":"` + second + `","inputSchema":{"type":"object"}}]}`)
	case "tools/call":
		rec.ids = append(rec.ids, string(m.ID))
		rec.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		rec.do(w, r, m.ID)
	case "server/discover":
		rec.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID)
	default:
		rec.got = append(rec.got, string(body))
		rec.mu.Unlock()
		w.WriteHeader(http.StatusAccepted)
	}
}

// until waits for a message with a text.
func (rec *recorder) until(t *testing.T, text string) {
	t.Helper()
	for {
		rec.mu.Lock()
		has := slices.ContainsFunc(rec.got, func(m string) bool { return strings.Contains(m, text) })
		rec.mu.Unlock()
		if has {
			return
		}
		select {
		case <-rec.more:
		case <-t.Context().Done():
			t.Fatalf("no message with %s", text)
		}
	}
}

func sendEvents(w http.ResponseWriter, events ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		fmt.Fprintf(w, "%s\n\n", e)
	}
}

func resultFor(id json.RawMessage) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"1"}]}}`, id)
}

// The result is what the server wrote, in each possible form.
func TestSend(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(http.ResponseWriter, *http.Request, json.RawMessage)
	}{
		{"JSON", func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, resultFor(id))
		}},
		{"a stream", func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
			sendEvents(w, "event: message\ndata: "+resultFor(id))
		}},
		{"a stream whose events have ids", func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
			sendEvents(w, "id: 1\ndata:", "id: 2\nevent: message\ndata: "+resultFor(id))
		}},
		{"an event of another kind before it", func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
			sendEvents(w, "event: other\ndata: {}", ": a comment", "data: "+resultFor(id))
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rec := record(t, tc.do)
			u := open(t, mcp.Options{}, web("s", rec.url))
			for range 3 {
				if res, err := u.Call(t.Context(), key("s"), "t", nil, false); err != nil || string(res.Content) != "1" {
					t.Fatalf("got %s, %v", res.Content, err)
				}
			}
		})
	}
}

// A stream that ends before the response is resumed after its last event, while it brings something new,
// and after the delay that the server requests.
func TestSendResumes(t *testing.T) {
	for name, tc := range map[string]struct {
		streams []string // of the request and of each resumption; A is the response
		err     string
		last    string // the IDs of the last events when it was resumed
	}{
		"once":              {[]string{"id: 1\nretry: 1\ndata:\n\n", "id: 2\ndata: A\n\n"}, "", "1"},
		"twice":             {[]string{"id: 1\nretry: 1\ndata:\n\n", "id: 2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n", "data: A\n\n"}, "", "1 2"},
		"never":             {[]string{"id: 1\nretry: 1\ndata:\n\n", "", "", "", "", "", ""}, "without a result", "1 1 1 1 1 1"},
		"not offered":       {[]string{"id: 1\nretry: 1\ndata:\n\n"}, "404 Not Found", "1"},
		"without ids":       {[]string{"retry: 1\ndata:\n\n"}, "ended without a result", ""},
		"what is no answer": {[]string{"id: 1\ndata: nonsense\n\n"}, "not JSON-RPC", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var id json.RawMessage
			var last []string
			streams := tc.streams
			next := func(w http.ResponseWriter) {
				w.Header().Set("Content-Type", "text/event-stream")
				io.WriteString(w, strings.ReplaceAll(streams[0], "A", resultFor(id)))
				streams = streams[1:]
			}
			rec := record(t, func(w http.ResponseWriter, _ *http.Request, call json.RawMessage) { id = call; next(w) })
			rec.get = func(w http.ResponseWriter, r *http.Request) {
				last = append(last, r.Header.Get("Last-Event-ID"))
				if len(streams) == 0 {
					w.WriteHeader(http.StatusNotFound)
					return
				}
				next(w)
			}
			u := open(t, mcp.Options{}, web("s", rec.url))
			res, err := u.Call(t.Context(), key("s"), "t", nil, false)
			if tc.err == "" && (err != nil || string(res.Content) != "1") || tc.err != "" && (err == nil || !strings.Contains(v1.Detailed(err), tc.err)) {
				t.Errorf("got %s, %v", res.Content, err)
			}
			if got := strings.Join(last, " "); got != tc.last {
				t.Errorf("taken up again after %q, expected %q", got, tc.last)
			}
		})
	}
}

// Messages of a server in the stream of a call are received.
func TestSendStream(t *testing.T) {
	rec := record(t, nil)
	rec.do = func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
		sendEvents(w, `data: {"jsonrpc":"2.0","id":"q1","method":"ping"}`, `data: {"jsonrpc":"2.0","id":"q2","method":"server/invents"}`,
			`data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`, "data: "+resultFor(id))
	}
	changed := make(chan struct{}, 10)
	u := open(t, mcp.Options{OnChange: func(v1.Key) { changed <- struct{}{} }}, web("s", rec.url))
	u.Discover(t.Context())
	if res, err := u.Call(t.Context(), key("s"), "t", nil, false); err != nil || string(res.Content) != "1" {
		t.Fatalf("got %s, %v", res.Content, err)
	}
	rec.until(t, `"id":"q1","result":{}`)
	rec.until(t, `"id":"q2","error":{"code":-32601`)
	<-changed
}

// A server with a session is notified of a cancelled call. A lost call is a typed error, and the next call
// works.
func TestSendViolations(t *testing.T) {
	rec := record(t, nil)
	var how string
	began := make(chan struct{}, 1)
	rec.do = func(w http.ResponseWriter, r *http.Request, id json.RawMessage) {
		switch how {
		case "hang":
			began <- struct{}{}
			<-r.Context().Done()
		case "cut":
			sendEvents(w, `data: {"jsonrpc":"2.0","method":"notifications/other"}`)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		case "end":
			sendEvents(w)
		case "refuse":
			w.WriteHeader(http.StatusForbidden)
		case "error":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"bad"}}`, id)
		case "gone":
			how = ""
			w.WriteHeader(http.StatusNotFound)
		default:
			sendEvents(w, "data: "+resultFor(id))
		}
	}
	u := open(t, mcp.Options{}, web("s", rec.url))
	call := func(ctx context.Context) error {
		_, err := u.Call(ctx, key("s"), "t", nil, false)
		return err
	}
	for _, tc := range []struct {
		how, text string
		code      int64
	}{
		{"cut", "", 0},
		{"end", "the response ended without a result", 0},
		{"refuse", "403 Forbidden", 0},
		{"error", "bad", -32602},
	} {
		t.Run(tc.how, func(t *testing.T) {
			how = ""
			if err := call(t.Context()); err != nil {
				t.Fatal(err)
			}
			how = tc.how
			err := call(t.Context())
			var failed *v1.MCPError
			if !errors.As(err, &failed) || failed.Code != tc.code || !strings.Contains(v1.Detailed(err), tc.text) {
				t.Errorf("got %#v", err)
			}
		})
	}
	t.Run("gone", func(t *testing.T) {
		how = "gone" // the session has ended; the call uses the next session
		if err := call(t.Context()); err != nil {
			t.Error(err)
		}
		if err := call(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("cancel", func(t *testing.T) {
		how = "hang"
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-began
			cancel()
		}()
		if err := call(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		rec.mu.Lock()
		id := rec.ids[len(rec.ids)-1]
		rec.mu.Unlock()
		rec.until(t, `"method":"notifications/cancelled","params":{"requestId":`+id)
	})
}

// For a client that wants progress and can answer questions, progress and questions arrive before the
// response.
func TestSendForAClient(t *testing.T) {
	rec := record(t, nil)
	rec.do = func(w http.ResponseWriter, r *http.Request, id json.RawMessage) {
		var m struct {
			Params struct {
				Meta map[string]any `json:"_meta"`
			} `json:"params"`
		}
		_ = json.NewDecoder(r.Body).Decode(&m)
		sendEvents(w, fmt.Sprintf(`data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%q,"progress":1}}`, m.Params.Meta["progressToken"]),
			`data: {"jsonrpc":"2.0","id":"q`+strings.Trim(string(id), `"`)+`","method":"roots/list"}`)
		w.(http.Flusher).Flush()
		rec.until(t, `"id":"q`+strings.Trim(string(id), `"`)+`","result":{"roots":[]}`)
		fmt.Fprintf(w, "data: %s\n\n", resultFor(id))
	}
	u := open(t, mcp.Options{}, web("s", rec.url))
	ctx := mcp.WithPeer(t.Context(), &mcp.Peer{Key: "client", Can: mcp.Capabilities{Roots: true},
		Ask: func(_ context.Context, asked map[string]mcp.InputRequest) (map[string]json.RawMessage, error) {
			answers := map[string]json.RawMessage{}
			for name := range asked {
				answers[name] = json.RawMessage(`{"roots":[]}`)
			}
			return answers, nil
		}})
	for n := range 3 {
		reports := 0
		res, err := u.Call(mcp.WithProgress(ctx, func(mcp.Progress) { reports++ }), key("s"), "t", nil, false)
		if err != nil || string(res.Content) != "1" || reports != 1 {
			t.Errorf("call %d: %s, %v, %d reports", n, res.Content, err, reports)
		}
	}
}
