package server

import (
	"net/http"
	"slices"
)

// connection is an HTTP/1.1 connection. Its requests come one after the other, so a client that sends the
// next request has read the previous response completely, and a large response need not be kept for replay.
// Only the connection's own requests use its fields.
type connection struct {
	of     *replayStore // of the session of the last response; nil if that was not a stream
	number string       // of the stream
}

type connectionKey struct{}

// largeStream is the size in bytes from which a stream is dropped as early as possible.
const largeStream = 64 << 10

// connectionOf returns the connection of a request. It returns nil if others may have read the response or
// may be reading it: a proxy or another replica in front of this server, or other streams of HTTP/2.
func connectionOf(r *http.Request, c caller) *connection {
	if r.ProtoMajor != 1 || c.forwarded != nil {
		return nil
	}
	for _, name := range []string{"Via", "Forwarded", "X-Forwarded-For"} {
		if r.Header.Get(name) != "" {
			return nil
		}
	}
	conn, _ := r.Context().Value(connectionKey{}).(*connection)
	return conn
}

// next records that the next request of a session has arrived.
func (c *connection) next(s *session) {
	if c == nil {
		return
	}
	if c.of == s.replays && c.of != nil {
		c.of.wasRead(c.number)
	}
	c.of = nil
}

// ended records that a response has ended, on this connection or on another.
func (c *connection) ended(r *response) {
	if c != nil && r.whole {
		c.of, c.number = r.replay.of, r.replay.number
	}
}

// wasRead records that the client has read a stream, and drops the stream if it is large.
func (k *replayStore) wasRead(number string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.all, func(s *replayBuffer) bool { return s.number == number })
	if i >= 0 && k.all[i].over && k.all[i].pieces >= largeStream/keptPiece {
		k.drop(k.all[i])
	}
}
