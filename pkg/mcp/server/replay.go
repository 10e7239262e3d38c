package server

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"toolctl.dev/toolctl/pkg/admission"
)

// The events of a session's streams are kept for a while, so that a client whose connection was lost, or
// was closed to make the client poll, can resume the stream after the last event that it received (MCP
// specification 2025-11-25, basic/transports, resumability and redelivery).

const (
	eventPrefix = "toolctl-" // prefix of the IDs of our events
	// primeVersion is the first version whose clients accept an event without data.
	primeVersion = "2025-11-25"
	// primeAfter is how long an MCP server may take to answer such a client before the response becomes a
	// stream. Only with a stream can the client be made to poll, if the server requests that. See
	// Options.StreamAfter.
	primeAfter = 50 * time.Millisecond
	// retryAfter is how long a client waits before it reconnects after a lost connection.
	retryAfter = time.Second
	// maxRetryAfter limits the delay that a server may request.
	maxRetryAfter = time.Minute

	// keptFor is how long a stream can be resumed after it has ended.
	keptFor = 30 * time.Second
	// keptEvents limits the kept events of one stream, and keptStreams the kept streams of one session.
	keptEvents, keptStreams = 256, 64
	// keptPiece is the unit in which kept bytes are counted.
	keptPiece = 4 << 10
)

// newReplays returns the quota for the bytes of all kept events, which is a part of the memory budget.
func (s *Server) newReplays() *admission.Quota {
	return s.admission.Quota("kept events", max(1, int(s.admission.Limits().MemoryBudget/16/keptPiece)))
}

// replayStore holds the streams of one session whose events are kept.
type replayStore struct {
	room *admission.Quota // shared by all sessions
	who  string           // the principal whose share is used

	mu     sync.Mutex
	made   int
	ended  bool
	pieces int
	all    []*replayBuffer // oldest first
}

// replayBuffer holds the kept events of one stream. The mutex of its response guards the fields without
// another rule, except done.
type replayBuffer struct {
	of     *replayStore
	number string // identifies the stream in its session
	stream *response
	events []replayEvent
	next   int  // the number of the next event
	from   int  // the last missing event before events
	gap    bool // the missing events include more than notifications
	done   chan struct{}

	pieces int  // guarded by mu of the replayStore
	over   bool // guarded by mu of the replayStore: the stream has ended
	timer  *time.Timer
}

type replayEvent struct {
	number int
	text   []byte
	note   bool // a notification, which may be dropped
}

// keep starts keeping the events of a response; nil if the session has no room for the stream.
func (k *replayStore) keep(r *response) *replayBuffer {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ended || len(k.all) >= keptStreams && !k.dropOldest() {
		return nil
	}
	k.made++
	s := &replayBuffer{of: k, number: strconv.Itoa(k.made), stream: r, done: make(chan struct{})}
	k.all = append(k.all, s)
	return s
}

// find returns the stream of an event, and the number of the event.
func (k *replayStore) find(event string) (*replayBuffer, int) {
	number, last, _ := strings.Cut(strings.TrimPrefix(event, eventPrefix), "-")
	after, err := strconv.Atoi(last)
	if err != nil {
		return nil, 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if i := slices.IndexFunc(k.all, func(s *replayBuffer) bool { return s.number == number }); i >= 0 {
		return k.all[i], after
	}
	return nil, 0
}

// end drops all streams when the session has ended.
func (k *replayStore) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = true
	for len(k.all) > 0 {
		k.drop(k.all[0])
	}
}

// drop is called under mu.
func (k *replayStore) drop(s *replayBuffer) {
	if i := slices.Index(k.all, s); i >= 0 {
		k.all = slices.Delete(k.all, i, i+1)
		k.give(s, s.pieces)
	}
	if s.timer != nil {
		s.timer.Stop()
	}
}

// dropOldest drops the oldest stream that has ended; false if no stream has ended. It is called under mu.
func (k *replayStore) dropOldest() bool {
	i := slices.IndexFunc(k.all, func(s *replayBuffer) bool { return s.over })
	if i < 0 {
		return false
	}
	k.drop(k.all[i])
	return true
}

// take reserves space for an event of a stream; false if there is not enough space.
func (k *replayStore) take(s *replayBuffer, pieces int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for n := 0; n < pieces; {
		switch {
		case !slices.Contains(k.all, s):
			return false // the stream's space was already returned
		case k.pieces < max(1, k.room.All()/2) && k.room.Take(k.who) == nil:
			n++
			k.pieces++
			s.pieces++
		case !k.dropOldest():
			k.give(s, n)
			return false
		}
	}
	return true
}

// give is called under mu.
func (k *replayStore) give(s *replayBuffer, pieces int) {
	k.pieces -= pieces
	s.pieces -= pieces
	for range pieces {
		k.room.Give(k.who)
	}
}

func piecesOf(text []byte) int { return 1 + len(text)/keptPiece }

// add keeps an event and returns its ID. If there is not enough space, it drops the oldest notifications.
func (s *replayBuffer) add(text []byte, note bool) (id string) {
	n := s.next
	s.next++
	if cap(text) > len(text)+len(text)/8 {
		text = bytes.Clone(text) // releases the spare memory of the grown buffer
	}
	e := replayEvent{n, text, note}
	for len(s.events) >= keptEvents || !s.of.take(s, piecesOf(text)) {
		if !s.forgetNote() {
			s.forget(e)
			return s.id(n)
		}
	}
	s.events = append(s.events, e)
	return s.id(n)
}

func (s *replayBuffer) id(n int) string { return eventPrefix + s.number + "-" + strconv.Itoa(n) }

// forgetNote drops the oldest notification; false if there is no notification.
func (s *replayBuffer) forgetNote() bool {
	i := slices.IndexFunc(s.events, func(e replayEvent) bool { return e.note })
	if i < 0 {
		return false
	}
	e := s.events[i]
	s.events = slices.Delete(s.events, i, i+1)
	s.of.mu.Lock()
	if slices.Contains(s.of.all, s) {
		s.of.give(s, piecesOf(e.text))
	}
	s.of.mu.Unlock()
	return true
}

// forget records that an event is not kept.
func (s *replayBuffer) forget(e replayEvent) {
	if !e.note {
		s.from, s.gap = e.number, true
	}
}

// finish records that the stream has no more events.
func (s *replayBuffer) finish() {
	close(s.done)
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.over = true
	if slices.Contains(s.of.all, s) {
		s.timer = time.AfterFunc(keptFor, func() {
			s.of.mu.Lock()
			defer s.of.mu.Unlock()
			s.of.drop(s)
		})
	}
}

// reader is a request that resumes a stream.
type reader struct {
	http.ResponseWriter
	gone chan struct{} // closed when no more data follows
}

// resume writes the events after a given event and all later events; false if some of them are no longer
// kept. A previous reader of the stream gets no more events.
func (r *response) resume(ctx context.Context, w http.ResponseWriter, s *replayBuffer, after int) bool {
	r.mu.Lock()
	if after >= s.next || s.gap && after < s.from {
		r.mu.Unlock()
		return false
	}
	me := &reader{w, make(chan struct{})}
	r.leave()
	r.w, r.control = me, http.NewResponseController(w)
	streamHeaders(w)
	for _, e := range s.events {
		if e.number > after {
			_ = r.write(s.id(e.number), e.text) // the client may have gone again, but the events are kept
		}
	}
	_ = r.control.Flush()
	r.mu.Unlock()
	select {
	case <-s.done:
	case <-me.gone:
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.w == me {
		r.w = nil
	}
	return true
}

// leave disconnects the reader of the stream, which continues without a reader. It is called under mu.
func (r *response) leave() {
	if old, ok := r.w.(*reader); ok {
		close(old.gone)
	}
	r.w = nil
}

// prime turns the response into a stream if the result is late.
func (r *response) prime() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended && !r.streaming {
		r.begin()
		r.flush()
	}
}

// poll closes the connection and makes the client reconnect for the rest after a delay (MCP specification
// 2025-11-25, basic/transports, sending messages).
func (r *response) poll(after time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended || r.w == nil {
		return
	}
	after = min(max(after, time.Millisecond), maxRetryAfter)
	if !r.streaming {
		r.begin()
	}
	if r.replay == nil {
		r.flush()
		return
	}
	r.retry(after)
	r.flush()
	if _, again := r.w.(*reader); again {
		r.leave()
	} else if r.hangUp() {
		r.w = nil
	}
}

// hangUp ends the response before its handler returns; false if the connection does not support that, as
// with HTTP/2. It is called under mu.
func (r *response) hangUp() bool {
	if r.w == nil {
		return false
	}
	conn, out, err := r.control.Hijack()
	if err != nil {
		return false
	}
	_ = conn.SetDeadline(time.Now().Add(writeTimeout))
	if r.chunked {
		_, _ = out.WriteString("0\r\n\r\n")
	}
	_ = errors.Join(out.Flush(), conn.Close()) // the client reconnects or has gone
	return true
}
