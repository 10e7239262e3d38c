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
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// exchange is one request to a server, with the receivers for the messages that the server sends before its
// response.
type exchange struct {
	id     string
	method string
	name   string // the requested object, for the header that repeats it; may be empty
	meta   map[string]any
	params []param

	progress      func(Progress) // nil if the caller wants no progress
	clientRequest *clientRequest // the request of the client; nil if no message of the server is for the client
	out           *outbox        // for messages to the caller; nil without a receiver
	version       string         // for the headers, while the session is being opened
	quiet         bool           // the server gets no notification when the request is cancelled
	acknowledged  func()         // called when the server has accepted a subscription; may be nil
}

// param is one member of the parameters of a request. A raw JSON value is written unchanged.
type param struct {
	name  string
	value any
}

// text returns the request as one line.
func (x *exchange) text() ([]byte, error) { return wire.Request(x.id, x.method, x) }

// WriteJSON appends the parameters.
func (x *exchange) WriteJSON(b *bytes.Buffer) error {
	all := x.params
	if x.meta != nil {
		all = append([]param{{"_meta", x.meta}}, all...)
	}
	for i, p := range all {
		b.WriteByte("{,"[min(i, 1)])
		b.WriteString(`"` + p.name + `":`)
		if err := wire.Write(b, p.value); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	if len(all) == 0 {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return nil
}

// receipt is the outcome of sending a request.
type receipt struct {
	answer  *wire.Message // nil without a response
	reached bool          // the request may have reached the server
	status  int           // the HTTP status; 0 without a response
	gone    bool          // the server no longer knows the session and ignored the request
	broken  bool          // the server refused the request in a way that ends the session
}

// hear handles a message of the server that is not a response, in the order of arrival. x is the exchange
// in whose stream the message came; nil if there is no such exchange. tell sends the response to a request.
func (s *session) hear(m wire.Message, x *exchange, tell func([]byte) error) error {
	s.heard.Store(true)
	if m.ID == nil {
		s.notification(m, x)
		return nil
	}
	if s.openCalls.Add(1) > maxOpenCalls {
		err := fmt.Errorf("the server has %d open requests", maxOpenCalls)
		s.fail(err)
		return err
	}
	in := incoming{Message: m, of: x, reply: func(result json.RawMessage, failed *wire.Error) {
		defer s.openCalls.Add(-1)
		var text bytes.Buffer
		err := wire.Answer(&text, m.ID, result, failed)
		if err == nil {
			err = tell(text.Bytes())
		}
		if err != nil {
			s.log.Debug("an answer did not reach the server", slog.String("error", s.mask(err.Error())))
		}
	}}
	switch m.Method {
	case "ping":
		s.aside(func() { in.reply(json.RawMessage("{}"), nil) })
	case wire.MethodRoots, wire.MethodSample, wire.MethodElicit:
		if s.remote {
			in.of, in.Body = s.relayedOf(in.Body)
		}
		s.ask(in)
	default:
		s.aside(func() {
			in.reply(nil, &wire.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("method not found: %q", clip.Bytes(m.Method, 100))})
		})
	}
	return nil
}

// maxOpenCalls limits the requests of a server that wait for our response, because a server that never
// reads the responses would fill the memory.
const maxOpenCalls = 256

func (s *session) notification(m wire.Message, x *exchange) {
	in := incoming{Message: m, of: x}
	switch m.Method {
	case "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed":
		s.upstream.changed(strings.TrimSuffix(strings.TrimPrefix(m.Method, "notifications/"), "/list_changed"))
	case methodMoved:
		if s.remote {
			s.upstream.moved(s)
		}
	case "notifications/subscriptions/acknowledged":
		if x = s.subscription(m, x); x != nil && x.acknowledged != nil {
			x.acknowledged()
		}
	case wire.MethodCancelled:
		s.asked.Cancel(m, errServerCancelled)
	case "notifications/progress":
		var p struct {
			Token any `json:"progressToken"`
			Progress
		}
		if json.Unmarshal(in.Body, &p) == nil {
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
		if json.Unmarshal(in.Body, &p) == nil && s.slot == &s.upstream.shared {
			s.upstream.resourceUpdated(p.URI)
		}
	}
}

// reportProgress passes a report to the call that requested it. It drops the report if the call has not
// processed earlier reports.
func (s *session) reportProgress(token any, p Progress) {
	name, _ := token.(string)
	s.mu.Lock()
	x := s.exchanges[name]
	s.mu.Unlock()
	if x != nil && x.progress != nil {
		x.out.put(func() { x.progress(p) })
	}
}

const maxLogText = 4 << 10

// logMessage passes on a log message of the server (MCP specification, server/utilities/logging).
func (s *session) logMessage(in incoming) {
	var p struct {
		Level  string          `json:"level"`
		Logger string          `json:"logger"`
		Data   json.RawMessage `json:"data"`
	}
	if json.Unmarshal(in.Body, &p) != nil {
		return
	}
	s.forward(in, func(c *Peer) bool { return c.LogLevel != "" && severity(p.Level) >= severity(c.LogLevel) })
	text := string(p.Data)
	var plain string
	if json.Unmarshal(p.Data, &plain) == nil {
		text = plain
	}
	attrs, masks := []slog.Attr{slog.String("source", "message")}, s.outputMasks()
	if p.Logger != "" {
		attrs = append(attrs, slog.String("logger", clip.Bytes(masks.Text(p.Logger), 100)))
	}
	s.log.LogAttrs(context.Background(), logLevels[severity(p.Level)], clip.Bytes(masks.Text(text), maxLogText), attrs...)
}

// severity orders log levels. An unknown level counts as info.
func severity(level string) int {
	if n := slices.Index(wire.Levels, level); n >= 0 {
		return n
	}
	return 1
}

// logLevels are the levels of log/slog that correspond to [wire.Levels].
var logLevels = []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelInfo, slog.LevelWarn, slog.LevelError, slog.LevelError, slog.LevelError, slog.LevelError}
