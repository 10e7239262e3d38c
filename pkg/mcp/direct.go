package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"toolctl.dev/toolctl/internal/jsontext"
)

// A call over streamable HTTP is one request and one response, and of the response the
// SDK sees only a placeholder. So once the session has shown that its responses need
// nothing else of the SDK, such as to be taken up again where they broke off, calls are
// sent here, which costs a part of what they do through the SDK. What the server says or
// asks before its answer is the same either way: the session reads it.

// Ways of calls over HTTP, of [httpLink.way].
const (
	wayUnknown int32 = iota
	wayDirect        // calls may be sent without the SDK
	waySDK           // they may not
)

// directTool is a call in the form in which it is sent without the SDK.
type directTool struct {
	name string
	args json.RawMessage
}

// mayDirect returns the link over which a call is sent without the SDK; nil when it
// is not.
func (s *session) mayDirect(t *directTool) *httpLink {
	l, ok := s.link.(*httpLink)
	if !ok || t == nil || l.sse || l.oauth != nil || l.way.Load() != wayDirect || !headerSafe(t.name) {
		return nil
	}
	return l
}

// headerSafe reports whether a header may hold a text as it is (MCP specification
// 2026-07-28, basic/transports, encoding of values).
func headerSafe(text string) bool {
	for _, c := range []byte(text) {
		if c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return text != "" && text[0] != '='
}

// learn notes what an answer says of the way of the next call.
func (l *httpLink) learn(x *exchange, resumable bool) {
	if x == nil {
		return
	}
	a := x.answer.Load()
	switch {
	case a == nil:
	case resumable, x.method == "tools/list" && bytes.Contains(a.result, []byte(`"x-mcp-header"`)): // which the SDK knows to send
		l.way.Store(waySDK)
	case x.method == "tools/call":
		l.way.CompareAndSwap(wayUnknown, wayDirect)
	}
}

// call sends a call and returns when its answer was taken or cannot come any more.
func (l *httpLink) call(ctx context.Context, x *exchange, t *directTool, meta sdk.Meta) error {
	x.direct = true
	id := "d" + strconv.FormatInt(l.ids.Add(1), 10)
	modern := l.s.modern()
	version := l.s.client.InitializeResult().ProtocolVersion
	if modern {
		if meta == nil {
			meta = sdk.Meta{}
		}
		o := &l.s.upstream.owner.opts
		meta[metaVersion], meta[metaClient] = version, sdk.Implementation{Name: o.Name, Version: o.Version}
		if meta[metaCapabilities] == nil { // those of the client, where there is one
			meta[metaCapabilities] = struct{}{}
		}
	}
	params := struct {
		Meta sdk.Meta        `json:"_meta,omitempty"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"arguments"`
	}{meta, t.name, t.args}
	var body bytes.Buffer
	body.WriteString(`{"jsonrpc":"2.0","id":"` + id + `","method":"tools/call","params":`)
	if err := jsontext.Write(&body, params); err != nil {
		return err
	}
	body.WriteByte('}')
	req, err := http.NewRequestWithContext(withExchange(ctx, x), http.MethodPost, l.to.String(), &body)
	if err != nil {
		return err
	}
	h := req.Header
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json, text/event-stream")
	h.Set(versionHeader, version)
	if s := l.s.client.ID(); s != "" {
		h.Set(sessionHeader, s)
	}
	if modern {
		h.Set("Mcp-Method", "tools/call")
		h.Set("Mcp-Name", t.name)
	}
	resp, err := l.client.Do(req)
	if err == nil {
		err = l.await(resp, x)
	}
	if err != nil && x.status.Load() == 0 && ctx.Err() == nil {
		l.way.CompareAndSwap(wayDirect, wayUnknown) // the SDK decides what is left of the session
	}
	if ctx.Err() != nil && x.answer.Load() == nil && !modern {
		l.takeBack(req, id, ctx.Err())
	}
	return err
}

// await reads a response until the answer has come. What follows is read without the
// caller, so that the connection can be used again.
func (l *httpLink) await(resp *http.Response, x *exchange) error {
	few := make([]byte, 512)
	for x.answer.Load() == nil {
		_, err := resp.Body.Read(few)
		if err == nil || x.answer.Load() != nil {
			continue
		}
		resp.Body.Close()
		if e, ok := resp.Body.(*events); ok && e.resumable {
			l.way.Store(waySDK)
		}
		switch {
		case resp.StatusCode >= 300:
			return errors.New(statusText(resp.StatusCode))
		case errors.Is(err, io.EOF):
			return errors.New("the response ended without the answer")
		}
		return err
	}
	l.aside(func() {
		_, _ = io.Copy(io.Discard, resp.Body) // whatever it is, the answer has come
		resp.Body.Close()
	})
	return nil
}

// takeBack tells an older server that nobody waits for an answer any more (MCP
// specification, basic/utilities/cancellation). Others see it by the connection.
func (l *httpLink) takeBack(req *http.Request, id string, why error) {
	l.aside(func() {
		body := fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%q,"reason":%q}}`, id, why)
		_ = l.send(req, body) // a server that cannot be told finds out when it answers
	})
}

// aside runs what no caller waits for; end does. Of a link that was cut nothing takes long.
func (l *httpLink) aside(f func()) {
	l.mu.Lock()
	off := l.off
	if !off {
		l.streams.Go(f)
	}
	l.mu.Unlock()
	if off {
		f()
	}
}

// unseen does what the SDK does with a message of the server that is not the answer,
// where the SDK does not read the response.
func (l *httpLink) unseen(data []byte, reply func(id, result json.RawMessage, err *jsonrpc.Error)) {
	m, ok := split(data)
	switch {
	case !ok || m.method == "":
	case m.isCall() && m.method == "ping":
		l.aside(func() { reply(m.id, json.RawMessage("{}"), nil) })
	case m.isCall():
		l.aside(func() {
			reply(m.id, nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "method not found"})
		})
	default:
		if list, ok := strings.CutSuffix(strings.TrimPrefix(m.method, "notifications/"), "/list_changed"); ok {
			l.s.upstream.changed(list)
		}
	}
}

const (
	versionHeader = "Mcp-Protocol-Version"
	metaVersion   = "io.modelcontextprotocol/protocolVersion"
	metaClient    = "io.modelcontextprotocol/clientInfo"
)

// ways is what an [httpLink] keeps for calls without the SDK.
type ways struct {
	client *http.Client
	way    atomic.Int32
	ids    atomic.Int64
}
