package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/jsontext"
)

// exchange is one request that is sent to a server, and what the server may say of it
// before the answer. The SDK decodes results into maps, which lose the digits of large
// numbers and the order of keys, and keeps sessions and streams for them that cost several
// times what a call does. So it opens the session and watches over its end, and what is
// asked in between goes through [link.send], whose answer is what the server wrote.
type exchange struct {
	id     string
	method string
	name   string // of what is asked for, for the header that repeats it; empty when nothing is
	meta   map[string]any
	params []param

	progress      func(Progress) // nil when nobody asked
	clientRequest *clientRequest // for whom it is; nil when nothing of the server is for the client
	out           *outbox        // where messages for the caller wait; nil when there is none
}

// param is one member of the parameters of a request. A value that is JSON already is
// written as it is.
type param struct {
	name  string
	value any
}

// encode writes the request as one line.
func (x *exchange) encode(b *bytes.Buffer) error {
	b.WriteString(`{"jsonrpc":"2.0","id":"` + x.id + `","method":"` + x.method + `","params":`)
	if err := x.encodeParams(b); err != nil {
		return err
	}
	b.WriteByte('}')
	return nil
}

func (x *exchange) encodeParams(b *bytes.Buffer) error {
	all := x.params
	if x.meta != nil {
		all = append([]param{{"_meta", x.meta}}, all...)
	}
	for i, p := range all {
		b.WriteByte("{,"[min(i, 1)])
		b.WriteString(`"` + p.name + `":`)
		var err error
		if raw, ok := p.value.(json.RawMessage); ok {
			err = json.Compact(b, raw) // what has a line end would be two messages over stdio
		} else {
			err = jsontext.Write(b, p.value)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	if len(all) == 0 {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return nil
}

// answer is what the server answered.
type answer struct {
	result json.RawMessage
	err    *jsonrpc.Error
}

// receipt says how far a request came.
type receipt struct {
	answer  *answer // nil when none came
	reached bool    // the request may have reached the server
	status  int     // of the HTTP response; 0 when there was none
	gone    bool    // the server no longer knows the session, and did nothing
	broken  bool    // the server refused it in a way that ends the session
}

// receive takes a request or notification of the server. It returns whether the SDK gets
// to see it: the SDK waits for nothing but the acknowledgement of its subscriptions. It
// would run its handlers after the answer of the call they belong to, and call some with
// nil where a server left parameters out.
func (s *session) receive(in incoming) (forSDK bool, err error) {
	s.heard.Store(true)
	if len(in.id) == 0 {
		s.notification(in)
		return in.method == "notifications/subscriptions/acknowledged", nil
	}
	if s.openCalls.Add(1) > maxOpenCalls {
		return false, fmt.Errorf("the server has %d requests open at once", maxOpenCalls)
	}
	reply := in.reply
	in.reply = func(result json.RawMessage, err *jsonrpc.Error) {
		defer s.openCalls.Add(-1)
		reply(result, err)
	}
	switch in.method {
	case "ping":
		s.aside(func() { in.reply(json.RawMessage("{}"), nil) })
	case methodRoots, methodSample, methodElicit:
		if s.remote {
			in.of, in.params = s.relayedOf(in.params)
		}
		s.ask(in)
	default:
		s.aside(func() {
			in.reply(nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("method not found: %q", clip.Bytes(in.method, 100))})
		})
	}
	return false, nil
}

// maxOpenCalls bounds the requests of a server that wait for our answer: one that
// asks and never reads would fill the memory.
const maxOpenCalls = 256

func (s *session) notification(in incoming) {
	switch in.method {
	case "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed":
		s.upstream.changed(strings.TrimSuffix(strings.TrimPrefix(in.method, "notifications/"), "/list_changed"))
	case methodMoved:
		if s.remote {
			s.upstream.moved(s)
		}
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
}

// reportProgress hands a report to the call that asked for it, unless the call is
// behind with earlier ones.
func (s *session) reportProgress(token any, p Progress) {
	name, _ := token.(string)
	s.mu.Lock()
	x := s.tokens[name]
	s.mu.Unlock()
	if x != nil && x.progress != nil {
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
	attrs, masks := []slog.Attr{slog.String("source", "message")}, s.spoken()
	if p.Logger != "" {
		attrs = append(attrs, slog.String("logger", clip.Bytes(masks.Text(p.Logger), 100)))
	}
	s.log.LogAttrs(context.Background(), level, clip.Bytes(masks.Text(text), maxLogText), attrs...)
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
