package wire

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
)

// Calls are our requests that wait for the other side's answers.
type Calls struct {
	Prefix string // begins their ids

	mu      sync.Mutex
	made    int
	waiting map[string]chan Message // nil once there will be no answers
	over    bool
}

// Begin returns the id for a request and where its answer comes, until forget is called. The
// channel is closed when no answer will come.
func (c *Calls) Begin() (id string, answer <-chan Message, forget func()) {
	c.mu.Lock()
	c.made++
	id = c.Prefix + strconv.Itoa(c.made)
	c.mu.Unlock()
	answer, forget = c.Expect(id)
	return id, answer, forget
}

// Deliver hands an answer to who waits for it; false when nobody does.
func (c *Calls) Deliver(m Message) bool {
	if len(m.ID) < 2 || m.ID[0] != '"' {
		return false
	}
	id := string(m.ID[1 : len(m.ID)-1])
	c.mu.Lock()
	defer c.mu.Unlock()
	came := c.waiting[id]
	if came == nil {
		return false
	}
	delete(c.waiting, id)
	came <- m // which has room for it
	return true
}

// Close says that no answer will come any more.
func (c *Calls) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	for id, came := range c.waiting {
		close(came)
		delete(c.waiting, id)
	}
}

// Running are the other side's requests that are being answered.
type Running struct {
	mu  sync.Mutex
	all map[string]context.CancelCauseFunc // by id
}

// Begin enters a request until End; false when one of this id runs.
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

// End says that a request is answered.
func (r *Running) End(id json.RawMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, string(id))
}

// Cancel ends the request that notifications/cancelled names.
func (r *Running) Cancel(m Message, cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cancel := r.all[string(m.Params.Get("requestId"))]; cancel != nil {
		cancel(cause)
	}
}

// CancelAll ends all of them.
func (r *Running) CancelAll(cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, cancel := range r.all {
		cancel(cause)
	}
}

// Expect is Begin for an id of the caller's own.
func (c *Calls) Expect(id string) (answer <-chan Message, forget func()) {
	came := make(chan Message, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		close(came)
		return came, func() {}
	}
	if c.waiting == nil {
		c.waiting = map[string]chan Message{}
	}
	c.waiting[id] = came
	return came, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting, id)
	}
}
