package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// tapped shows a session the messages of a connection that carries all of them in
// one stream.
type tapped struct {
	sdk.Connection
	s *session

	// Only the reader uses these, until the server has said something.
	late chan read // a read that goes on in the background
}

type read struct {
	m   jsonrpc.Message
	err error
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
			return nil, err
		}
		keep, err := t.see(m)
		if err != nil {
			t.s.fail(err)
			return nil, err
		}
		if keep {
			return m, nil
		}
	}
}

// see shows the session a message, which it may change; false when the SDK does not
// get it.
func (t *tapped) see(m jsonrpc.Message) (bool, error) {
	switch m := m.(type) {
	case *jsonrpc.Response:
		t.s.heard.Store(true)
		t.s.mu.Lock()
		x := t.s.pending[m.ID]
		delete(t.s.pending, m.ID)
		t.s.mu.Unlock()
		if x == nil {
			break
		}
		failure, _ := m.Error.(*jsonrpc.Error) //nolint:errorlint // the wire form, never wrapped
		if placeholder := x.take(m.Result, failure); placeholder != nil {
			m.Result = placeholder
		}
	case *jsonrpc.Request:
		in := incoming{method: m.Method, params: m.Params}
		if m.IsCall() {
			id, err := json.Marshal(m.ID.Raw())
			if err != nil {
				return false, err
			}
			in.id, in.reply = id, func(result json.RawMessage, err *jsonrpc.Error) { t.reply(m.ID, result, err) }
		}
		method, err := t.s.receive(in)
		m.Method = method
		return method != "", err
	}
	return true, nil
}

func (t *tapped) Write(ctx context.Context, m jsonrpc.Message) error {
	switch m := m.(type) {
	case *jsonrpc.Response:
		t.s.openCalls.Add(-1)
	case *jsonrpc.Request:
		if m.Method == "server/discover" {
			t.s.probe.Store(&discoverProbe{id: m.ID})
		}
		x := exchangeOf(ctx)
		if x == nil || !m.IsCall() {
			break
		}
		if x.more != nil {
			params, err := addFields(m.Params, x.more)
			if err != nil {
				return err
			}
			m.Params = params
		}
		x.begin()
		t.s.mu.Lock()
		t.s.pending[m.ID] = x
		x.id = m.ID
		t.s.mu.Unlock()
		x.sent.Store(true)
		err := t.Connection.Write(ctx, m)
		if st, ok := t.Connection.(*stream); ok {
			x.stream.Store(st)
			if err != nil {
				x.sent.Store(false) // what was cut off is no message to the server
			}
		}
		return err
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
