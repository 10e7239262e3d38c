package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// tapped shows a session the messages of a connection that carries all of them in
// one stream.
type tapped struct {
	sdk.Connection
	s   *session
	off chan struct{} // closed when nothing is read any more

	// Only the reader uses these, until the server has said something.
	late chan read // a read that goes on in the background
}

type read struct {
	m   jsonrpc.Message
	err error
}

func newTapped(c sdk.Connection, s *session) *tapped {
	t := &tapped{Connection: c, s: s, off: make(chan struct{})}
	if st, ok := c.(*stream); ok {
		st.take = t.take
	}
	return t
}

// next reads a message. A server that does not answer server/discover in time gets
// the older handshake on the same session: some ignore what they do not know.
func (t *tapped) next(ctx context.Context) (jsonrpc.Message, error) {
	if t.s.heard.Load() && t.late == nil {
		return t.Connection.Read(ctx)
	}
	if t.late == nil {
		late := make(chan read, 1)
		t.late = late
		go func() { // ends with the connection, which is closed before the session ends
			m, err := t.Connection.Read(ctx)
			late <- read{m, err}
		}()
	}
	var over <-chan time.Time
	if probe := t.s.probe.Load(); probe == nil || !probe.spent {
		timer := time.NewTimer(t.s.patience)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case r := <-t.late:
		t.late = nil
		return r.m, r.err
	case <-over:
	}
	probe := t.s.probe.Load()
	if probe == nil { // nothing was asked yet
		return t.next(ctx)
	}
	t.s.probe.Store(&discoverProbe{probe.id, true})
	return &jsonrpc.Response{ID: probe.id, Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no answer"}}, nil
}

// discoverProbe is the request that asks a server for its version.
type discoverProbe struct {
	id    jsonrpc.ID
	spent bool // it was answered in place of the server
}

func (t *tapped) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		m, err := t.next(ctx)
		if err != nil {
			if l, ok := t.s.link.(*streamLink); ok {
				l.settle(errors.Is(err, io.EOF))
			}
			if !errors.Is(err, io.EOF) { // of an end without a word, the child's own end says more
				t.s.fail(fmt.Errorf("the session was lost: %w", err))
			}
			t.end()
			return nil, err
		}
		keep, err := t.see(m)
		if err != nil {
			t.s.fail(err)
			t.end()
			return nil, err
		}
		if keep {
			return m, nil
		}
	}
}

// end tells those who wait for an answer that none will come. Only the reader calls it.
func (t *tapped) end() {
	select {
	case <-t.off:
	default:
		close(t.off)
	}
}

// see shows the session a message; false when the SDK does not get it.
func (t *tapped) see(m jsonrpc.Message) (bool, error) {
	switch m := m.(type) {
	case *jsonrpc.Response:
		t.s.heard.Store(true)
		failure, _ := m.Error.(*jsonrpc.Error) //nolint:errorlint // the wire form, never wrapped
		a := &answer{m.Result, failure}
		if id, ok := m.ID.Raw().(string); ok && t.s.deliver(id, a) {
			return false, nil
		}
		t.s.hello.answer.Store(a)
	case *jsonrpc.Request:
		in := incoming{method: m.Method, params: m.Params}
		if m.IsCall() {
			id, err := json.Marshal(m.ID.Raw())
			if err != nil {
				return false, err
			}
			in.id, in.reply = id, func(result json.RawMessage, err *jsonrpc.Error) { t.reply(m.ID, result, err) }
		}
		return t.s.receive(in)
	}
	return true, nil
}

// take is see for an answer to one of our requests, as it stands in the line.
func (t *tapped) take(m *envelope) bool {
	if m.method != "" || m.result == nil && m.failure == nil || !bytes.HasPrefix(m.id, []byte(`"`+ourIDs)) {
		return false
	}
	t.s.heard.Store(true)
	id := string(m.id[1 : len(m.id)-1])
	return t.s.deliver(id, &answer{bytes.Clone(m.result), m.error()})
}

// ourIDs begins the ids of requests that are sent without the SDK, whose own are numbers.
const ourIDs = "r"

// deliver hands an answer to who waits for it. True says that it is of a request of ours,
// whether or not anybody still waits.
func (s *session) deliver(id string, a *answer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if came := s.pending[id]; came != nil {
		delete(s.pending, id)
		came <- a
	}
	return strings.HasPrefix(id, ourIDs)
}

// send is [link.send] over the connection.
func (t *tapped) send(ctx context.Context, x *exchange) (got receipt, err error) {
	var line bytes.Buffer
	if err := x.encode(&line); err != nil {
		return got, err
	}
	line.WriteByte('\n')
	came := make(chan *answer, 1)
	t.s.mu.Lock()
	t.s.pending[x.id] = came
	t.s.mu.Unlock()
	defer func() {
		t.s.mu.Lock()
		delete(t.s.pending, x.id)
		t.s.mu.Unlock()
	}()
	st, direct := t.Connection.(*stream)
	if direct {
		var end int64
		end, err = st.write(ctx, line.Bytes())
		defer func() { got.reached = got.reached && st.mayHaveRead(end) }() // once it is known what was read
	} else {
		err = t.post(ctx, line.Bytes())
	}
	got.reached = err == nil || !direct // what was cut off is no message to the server
	if err != nil {
		return got, err
	}
	select {
	case got.answer = <-came:
		return got, nil
	case <-t.off:
		return got, sdk.ErrConnectionClosed
	case <-ctx.Done():
	}
	why := ctx.Err()
	t.s.aside(func() { // a server that cannot be told finds out when it answers
		_ = t.post(context.Background(), fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%q,"reason":%q}}`, x.id, why))
	})
	return got, why
}

// post writes a message through the connection of the SDK.
func (t *tapped) post(ctx context.Context, message []byte) error {
	m, err := jsonrpc.DecodeMessage(message)
	if err != nil {
		return err
	}
	return t.Connection.Write(ctx, m)
}

func (t *tapped) Write(ctx context.Context, m jsonrpc.Message) error {
	if m, ok := m.(*jsonrpc.Request); ok && m.IsCall() {
		if m.Method == "server/discover" {
			t.s.probe.Store(&discoverProbe{id: m.ID})
		}
		t.s.hello.begin()
	}
	return t.Connection.Write(ctx, m)
}

// reply answers a request of the server.
func (t *tapped) reply(id jsonrpc.ID, result json.RawMessage, failure *jsonrpc.Error) {
	m := &jsonrpc.Response{ID: id, Result: result}
	if failure != nil {
		m.Error = failure
	}
	if err := t.Write(context.Background(), m); err != nil {
		t.s.log.Debug("an answer did not reach the server", slog.String("error", t.s.mask(plain(err))))
	}
}
