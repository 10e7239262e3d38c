package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
)

// exchange is one request and what came back for it. It travels in the context of
// the request, so that the transport finds it. The SDK decodes results into maps,
// which lose the digits of large numbers and the order of keys; so the transport
// takes the result as it came, and gives the SDK an empty one in its place.
type exchange struct {
	method string
	id     jsonrpc.ID // under the mutex of the session

	sent   atomic.Bool  // the request may have reached the server
	gone   atomic.Bool  // the server does not know the session any more, and did nothing
	status atomic.Int32 // of the HTTP response

	stream atomic.Pointer[stream] // that it went into, if it did
	end    atomic.Int64           // where it ended there

	direct        bool            // it was sent without the SDK
	progress      func(Progress)  // nil when nobody asked
	clientRequest *clientRequest  // for whom it is; nil when nothing of the server is for the client
	out           *outbox         // where messages for the caller wait; nil when there is none
	more          json.RawMessage // fields that are added to the parameters; nil when there are none

	answer atomic.Pointer[answer]
}

// answer is what the server answered.
type answer struct {
	result json.RawMessage
	err    *jsonrpc.Error
}

// reached reports whether the request may have reached the server.
func (x *exchange) reached() bool {
	if st := x.stream.Load(); st != nil && !st.mayHaveRead(x.end.Load()) {
		return false
	}
	return x.sent.Load()
}

type exchangeKey struct{}

func withExchange(ctx context.Context, x *exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// placeholders are what the SDK gets in place of a result that was taken.
var placeholders = map[string]json.RawMessage{
	"tools/call":               json.RawMessage(`{"content":[],"resultType":"complete"}`),
	"tools/list":               json.RawMessage(`{"tools":[],"resultType":"complete"}`),
	"prompts/list":             json.RawMessage(`{"prompts":[],"resultType":"complete"}`),
	"prompts/get":              json.RawMessage(`{"messages":[],"resultType":"complete"}`),
	"resources/list":           json.RawMessage(`{"resources":[],"resultType":"complete"}`),
	"resources/templates/list": json.RawMessage(`{"resourceTemplates":[],"resultType":"complete"}`),
	"resources/read":           json.RawMessage(`{"contents":[],"resultType":"complete"}`),
	"resources/subscribe":      json.RawMessage(`{}`),
	"resources/unsubscribe":    json.RawMessage(`{}`),
	"completion/complete":      json.RawMessage(`{"completion":{"values":[]},"resultType":"complete"}`),
}

// begin forgets the answer to the request before: the opening of a session makes
// several, of which the last counts.
func (x *exchange) begin() {
	if x.method == "" {
		x.answer.Store(nil)
	}
}

// take keeps what was answered, and returns what the SDK gets in place of the
// result; nil when it gets the result itself.
func (x *exchange) take(result json.RawMessage, err *jsonrpc.Error) json.RawMessage {
	x.answer.Store(&answer{result, err})
	placeholder := placeholders[x.method]
	if err != nil || placeholder == nil {
		return nil
	}
	if x.method == "tools/list" {
		return headerTools(result)
	}
	return placeholder
}

// headerTools returns a list of only those tools of a page whose arguments are also
// sent as HTTP headers (x-mcp-header, MCP 2026-07-28), which the SDK does when it
// knows the tool. The SDK drops a whole page for one tool that it cannot decode.
func headerTools(page json.RawMessage) json.RawMessage {
	if !bytes.Contains(page, []byte(`"x-mcp-header"`)) {
		return placeholders["tools/list"]
	}
	var list struct {
		Tools []json.RawMessage `json:"tools"`
	}
	if json.Unmarshal(page, &list) != nil {
		return placeholders["tools/list"]
	}
	type tool struct {
		Name        string          `json:"name"`
		InputSchema json.RawMessage `json:"inputSchema"`
	}
	keep := struct {
		Tools      []tool `json:"tools"`
		ResultType string `json:"resultType"`
	}{[]tool{}, "complete"}
	for _, raw := range list.Tools {
		var t tool
		if bytes.Contains(raw, []byte(`"x-mcp-header"`)) && json.Unmarshal(raw, &t) == nil && v1.JSONKind(t.InputSchema) == "object" {
			keep.Tools = append(keep.Tools, t)
		}
	}
	out, err := json.Marshal(keep)
	if err != nil {
		return placeholders["tools/list"]
	}
	return out
}

// receive looks at a request or notification of the server before the SDK does. It
// returns the method that the SDK gets to see; an empty one for none.
//
// What a server asks of the client, progress and log messages are handled here: the
// SDK would run its handlers after the answer of the call they belong to. What no
// handler waits for is dropped: the SDK calls some handlers with nil where a server
// left parameters out.
func (s *session) receive(in incoming) (string, error) {
	s.heard.Store(true)
	if len(in.id) == 0 {
		return s.notification(in), nil
	}
	if s.openCalls.Add(1) > maxOpenCalls {
		return "", fmt.Errorf("the server has %d requests open at once", maxOpenCalls)
	}
	switch in.method {
	case "ping":
		return in.method, nil
	case methodRoots, methodSample, methodElicit:
		s.ask(in)
		return "", nil
	}
	return "unsupported/" + in.method, nil // the SDK answers: method not found
}

// maxOpenCalls bounds the requests of a server that wait for our answer: one that
// asks and never reads would fill the memory.
const maxOpenCalls = 256

func (s *session) notification(in incoming) string {
	switch in.method {
	case "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed",
		"notifications/subscriptions/acknowledged":
		return in.method
	case "notifications/cancelled":
		s.takeBack(in.params)
	case "notifications/progress":
		var p struct {
			Token any `json:"progressToken"`
			Progress
		}
		if json.Unmarshal(in.params, &p) == nil {
			s.reportProgress(p.Token, p.Progress)
		}
	case "notifications/message":
		s.logMessage(in)
	case "notifications/elicitation/complete":
		s.forward(in, func(p *Peer) bool { return p.Can.URL })
	case "notifications/resources/updated":
		var p struct {
			URI string `json:"uri"`
		}
		if json.Unmarshal(in.params, &p) == nil && s.slot == &s.upstream.shared {
			s.upstream.resourceUpdated(p.URI)
		}
	}
	return ""
}

// reportProgress hands a report to the call that asked for it, unless the call is
// behind with earlier ones.
func (s *session) reportProgress(token any, p Progress) {
	name, _ := token.(string)
	s.mu.Lock()
	x := s.tokens[name]
	s.mu.Unlock()
	if x != nil {
		x.out.put(func() { x.progress(p) })
	}
}

const maxLogText = 4 << 10

// logMessage passes a log message of the server on (MCP specification, server/utilities/logging).
func (s *session) logMessage(in incoming) {
	var p struct {
		Level  string          `json:"level"`
		Logger string          `json:"logger"`
		Data   json.RawMessage `json:"data"`
	}
	if json.Unmarshal(in.params, &p) != nil {
		return
	}
	s.forward(in, func(c *Peer) bool { return c.LogLevel != "" && severity(p.Level) >= severity(c.LogLevel) })
	level, ok := logLevels[p.Level]
	if !ok {
		level = slog.LevelInfo
	}
	text := string(p.Data)
	var plain string
	if json.Unmarshal(p.Data, &plain) == nil {
		text = plain
	}
	attrs := []slog.Attr{slog.String("source", "message")}
	if p.Logger != "" {
		attrs = append(attrs, slog.String("logger", clip.Bytes(p.Logger, 100)))
	}
	s.log.LogAttrs(context.Background(), level, clip.Bytes(s.masks.Text(text), maxLogText), attrs...)
}

// severity orders the levels of RFC 5424; what is none counts as info.
func severity(level string) int {
	if n := slices.Index([]string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}, level); n >= 0 {
		return n
	}
	return 1
}

// logLevels are the levels of RFC 5424 that MCP uses.
var logLevels = map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "notice": slog.LevelInfo, "warning": slog.LevelWarn,
	"error": slog.LevelError, "critical": slog.LevelError, "alert": slog.LevelError, "emergency": slog.LevelError,
}
