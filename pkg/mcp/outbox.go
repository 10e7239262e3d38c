package mcp

import (
	"fmt"
	"log/slog"
	"sync"
)

// outbox passes on what a server says while a call runs, in the order in which it
// came. The reader of the session does not wait for whoever takes it. Its goroutine runs
// while there is something to pass on. The zero value works once log is set.
type outbox struct {
	log *slog.Logger

	mu      sync.Mutex
	queue   []func()
	running bool
	off     bool
	idle    sync.Cond // of mu; running ended
}

// maxOutbox is how many messages wait for who takes them: a server that says more is
// not waited for, and what is too much is left out.
const maxOutbox = 256

// put adds a message; false says that it was left out.
func (o *outbox) put(f func()) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.off || len(o.queue) >= maxOutbox {
		return false
	}
	o.queue = append(o.queue, f)
	if !o.running {
		o.running = true
		go o.run()
	}
	return true
}

func (o *outbox) run() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.queue) > 0 {
		f := o.queue[0]
		o.queue = o.queue[1:]
		o.mu.Unlock()
		o.call(f)
		o.mu.Lock()
	}
	o.queue, o.running = nil, false
	if o.idle.L != nil {
		o.idle.Broadcast()
	}
}

// call contains the panics of what takes messages: they are not the server's violation.
func (o *outbox) call(f func()) {
	defer func() {
		if p := recover(); p != nil {
			o.log.Error("a hook for the messages of a server panicked", slog.String("panic", fmt.Sprint(p)))
		}
	}()
	f()
}

// flush returns once everything that was put before has been passed on.
func (o *outbox) flush() {
	o.mu.Lock()
	if !o.running {
		o.mu.Unlock()
		return
	}
	passed := make(chan struct{})
	o.queue = append(o.queue, func() { close(passed) })
	o.mu.Unlock()
	<-passed
}

// close takes no more messages, and returns once the last has been passed on.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.off = true
	o.idle.L = &o.mu
	for o.running {
		o.idle.Wait()
	}
}
