package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"sync"
	"sync/atomic"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// stdioCalls answers tools/call over stdin and stdout without the SDK, which costs more
// than a call does. What is not as the protocol has it is left to the SDK, and so is all
// that goes to the client before the answer.
type stdioCalls struct {
	server  *Server
	out     io.Writer
	session atomic.Pointer[sdk.ServerSession] // nil until it is open
	running sync.WaitGroup
	workers *workers

	mu   sync.Mutex
	open map[string]context.CancelFunc // the calls that run, by id
}

// stdioChannel leads to the client of a call.
type stdioChannel struct {
	sdkChannel
	*workers // for what goes on when a round of the call is answered
}

// take begins to answer a line that is a call, until ctx ends; false when it is left to
// the SDK.
func (c *stdioCalls) take(ctx context.Context, line []byte) bool {
	session := c.session.Load()
	if session == nil {
		return false
	}
	if bytes.Contains(line, []byte(methodCancelled)) && c.cancel(line) {
		return true
	}
	call, ok := readCall(line)
	if !ok || call.isModern() && !call.wellFormed() || !call.isModern() && session.InitializeParams() == nil {
		return false
	}
	ctx, cancel := context.WithCancel(ctx)
	c.mu.Lock()
	known := c.open[string(call.id)] != nil
	if !known {
		c.open[string(call.id)] = cancel
	}
	c.mu.Unlock()
	if known {
		cancel()
		return false
	}
	c.running.Add(1)
	c.workers.run(func() {
		defer c.running.Done()
		defer cancel()
		req := &sdk.CallToolRequest{Session: session, Params: &call.params}
		message, _ := c.server.answer(ctx, stdioChannel{sdkChannel{session}, c.workers}, req, call)
		c.mu.Lock()
		delete(c.open, string(call.id)) // before its client knows, which may use the id again
		c.mu.Unlock()
		_, _ = c.out.Write(append(oneLine(message), '\n')) // the client is gone
		call.done()
	})
	return true
}

// oneLine is a message without line ends.
func oneLine(message []byte) []byte {
	if bytes.IndexByte(message, '\n') >= 0 || bytes.IndexByte(message, '\r') >= 0 { // between the tokens of a result that came so
		var line bytes.Buffer
		if json.Compact(&line, message) == nil {
			return line.Bytes()
		}
	}
	return message
}

// cancel ends a call that the client cancelled; false when it is none of these.
func (c *stdioCalls) cancel(line []byte) bool {
	var m struct {
		Method string `json:"method"`
		Params struct {
			ID json.RawMessage `json:"requestId"`
		} `json:"params"`
	}
	if json.Unmarshal(line, &m) != nil || m.Method != methodCancelled {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	end := c.open[string(m.Params.ID)]
	if end != nil {
		end()
	}
	return end != nil
}
