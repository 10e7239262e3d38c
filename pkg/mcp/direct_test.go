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

// recorder is an MCP server over HTTP that notes what it gets, and answers tools/call
// with do.
type recorder struct {
	url string
	do  func(w http.ResponseWriter, r *http.Request, id json.RawMessage)

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
		second := fmt.Sprintf("t%d", rec.lists) // each list is another
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

// until waits until a message with a text came.
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

// direct counts the calls that came without the SDK.
func (rec *recorder) direct() (n int) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	for _, id := range rec.ids {
		if strings.HasPrefix(id, `"d`) {
			n++
		}
	}
	return n
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

// The first call of a session shows whether the next may be sent without the SDK.
func TestDirectWay(t *testing.T) {
	for _, tc := range []struct {
		name   string
		do     func(http.ResponseWriter, *http.Request, json.RawMessage)
		direct int // of three calls
	}{
		{"an answer as JSON", func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, resultFor(id))
		}, 2},
		{"an answer as a stream", func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
			sendEvents(w, "event: message\ndata: "+resultFor(id))
		}, 2},
		{"a stream that may be taken up again", func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
			sendEvents(w, "id: 1\ndata:", "id: 2\nevent: message\ndata: "+resultFor(id))
		}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rec := record(t, tc.do)
			u := open(t, mcp.Options{}, web("s", rec.url))
			for range 3 {
				if res, err := u.Call(t.Context(), key("s"), "t", nil, false); err != nil || string(res.Content) != "1" {
					t.Fatalf("got %s, %v", res.Content, err)
				}
			}
			if n := rec.direct(); n != tc.direct {
				t.Errorf("%d calls without the SDK, expected %d: ids %s", n, tc.direct, rec.ids)
			}
		})
	}
}

// What a server says in the stream of a call that the SDK does not read gets what the
// SDK would do with it.
func TestDirectStream(t *testing.T) {
	rec := record(t, nil)
	calls := 0
	rec.do = func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
		if calls++; calls == 1 {
			sendEvents(w, "data: "+resultFor(id))
			return
		}
		sendEvents(w, `data: {"jsonrpc":"2.0","id":"q1","method":"ping"}`, `data: {"jsonrpc":"2.0","id":"q2","method":"server/invents"}`,
			`data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`, "data: "+resultFor(id))
	}
	changed := make(chan struct{}, 10)
	u := open(t, mcp.Options{OnChange: func(v1.Key) { changed <- struct{}{} }}, web("s", rec.url))
	u.Discover(t.Context())
	for range 2 {
		if res, err := u.Call(t.Context(), key("s"), "t", nil, false); err != nil || string(res.Content) != "1" {
			t.Fatalf("got %s, %v", res.Content, err)
		}
	}
	if rec.direct() != 1 {
		t.Errorf("ids %s", rec.ids)
	}
	rec.until(t, `"id":"q1","result":{}`)
	rec.until(t, `"id":"q2","error":{"code":-32601`)
	<-changed
}

// A server that has a session is told of a call that is cancelled; a call that is lost
// is a typed error, and the next finds a way again.
func TestDirectViolations(t *testing.T) {
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
		{"end", "the response ended without the answer", 0},
		{"refuse", "403 Forbidden", 0},
		{"error", "bad", -32602},
	} {
		t.Run(tc.how, func(t *testing.T) {
			how = ""
			for range 2 { // the second is direct whatever was before
				if err := call(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			before := rec.direct()
			how = tc.how
			err := call(t.Context())
			var failed *v1.MCPError
			if !errors.As(err, &failed) || failed.Code != tc.code || !strings.Contains(failed.Message, tc.text) {
				t.Errorf("got %#v", err)
			}
			if rec.direct() != before+1 {
				t.Errorf("the call was not direct: ids %s", rec.ids)
			}
		})
	}
	t.Run("gone", func(t *testing.T) {
		how = "gone" // the session; the call is made in the next
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
		if !strings.HasPrefix(id, `"d`) {
			t.Errorf("the call was not direct: %s", id)
		}
		rec.until(t, `"method":"notifications/cancelled","params":{"requestId":`+id)
	})
}

// A call on behalf of a client that wants progress and can be asked is sent without the SDK
// too: its progress and its question come before the answer.
func TestDirectForAClient(t *testing.T) {
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
	if n := rec.direct(); n != 2 {
		t.Errorf("%d calls without the SDK: ids %s", n, rec.ids)
	}
}
