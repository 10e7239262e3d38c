package wire

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
)

// Calls holds our requests that wait for a response from the other side.
type Calls struct {
	Prefix string // of their IDs

	mu      sync.Mutex
	made    int
	waiting map[string]chan Message
	over    bool // no more answers will arrive
}

// ErrClosed is the error of a request whose connection ended before the answer.
var ErrClosed = errors.New("connection closed")

// NewID returns the ID of the next request.
func (c *Calls) NewID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made++
	return c.Prefix + strconv.Itoa(c.made)
}

// Do sends a request with send and waits for its response. If ctx ends first, Do passes the cancellation
// notification of the request to cancel, unless that is nil, and returns the cause. After Close the error
// is [ErrClosed].
func (c *Calls) Do(ctx context.Context, id string, send func() error, cancel func([]byte)) (Message, error) {
	answer := make(chan Message, 1)
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		return Message{}, ErrClosed
	}
	if c.waiting == nil {
		c.waiting = map[string]chan Message{}
	}
	c.waiting[id] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting, id)
	}()
	if err := send(); err != nil {
		return Message{}, err
	}
	select {
	case m, ok := <-answer:
		if !ok {
			return Message{}, ErrClosed
		}
		return m, nil
	case <-ctx.Done():
		if cancel != nil {
			cancel(Cancelled(id, context.Cause(ctx)))
		}
		return Message{}, context.Cause(ctx)
	}
}

// Deliver passes a response to the request that waits for it. It returns false without such a request.
func (c *Calls) Deliver(m Message) bool {
	if len(m.ID) < 2 || m.ID[0] != '"' {
		return false
	}
	id := string(m.ID[1 : len(m.ID)-1])
	c.mu.Lock()
	defer c.mu.Unlock()
	answer := c.waiting[id]
	if answer == nil {
		return false
	}
	delete(c.waiting, id)
	answer <- m // the channel has room for it
	return true
}

// Close ends all waiting requests and every later request.
func (c *Calls) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	for id, answer := range c.waiting {
		close(answer)
		delete(c.waiting, id)
	}
}

// Running holds the requests of the other side that are being answered.
type Running struct {
	mu  sync.Mutex
	all map[string]context.CancelCauseFunc // by ID
}

// Begin adds a request until End. It returns false if a request with this ID is running.
func (r *Running) Begin(id json.RawMessage, cancel context.CancelCauseFunc) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all[string(id)] != nil {
		return false
	}
	if r.all == nil {
		r.all = map[string]context.CancelCauseFunc{}
	}
	r.all[string(id)] = cancel
	return true
}

// End removes a request.
func (r *Running) End(id json.RawMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, string(id))
}

// Cancel cancels the request that a [MethodCancelled] notification names.
func (r *Running) Cancel(m Message, cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cancel := r.all[string(m.Params.Get("requestId"))]; cancel != nil {
		cancel(cause)
	}
}

// CancelAll cancels all requests.
func (r *Running) CancelAll(cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, cancel := range r.all {
		cancel(cause)
	}
}
