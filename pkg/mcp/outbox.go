package mcp

import (
	"fmt"
	"log/slog"
	"sync"
)

// outbox passes on the messages that a server sends during a call, in order. The session's reader does not
// wait for their receiver. The goroutine of an outbox runs only while it has messages. The zero value is
// ready to use once log is set.
type outbox struct {
	log *slog.Logger

	mu      sync.Mutex
	queue   []func()
	running bool
	off     bool
	tasks   sync.WaitGroup
}

// maxOutbox is the maximum number of messages that wait for their receiver. Further messages are dropped.
const maxOutbox = 256

// put adds a message. It returns false if the message was dropped.
func (o *outbox) put(f func()) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.off || len(o.queue) >= maxOutbox {
		return false
	}
	o.queue = append(o.queue, f)
	if !o.running {
		o.running = true
		o.tasks.Go(o.run)
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
}

// call calls f and recovers from a panic of the receiver, which is not the server's fault.
func (o *outbox) call(f func()) {
	defer func() {
		if p := recover(); p != nil {
			o.log.Error("a hook for the messages of a server panicked", slog.String("panic", fmt.Sprint(p)))
		}
	}()
	f()
}

// flush returns once all earlier messages have been passed on.
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

// close drops all later messages, and returns once the earlier messages have been passed on.
func (o *outbox) close() {
	o.mu.Lock()
	o.off = true
	o.mu.Unlock()
	o.tasks.Wait()
}
