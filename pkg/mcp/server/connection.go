package server

import (
	"net/http"
	"slices"
)

// connection is a connection of HTTP/1.1. Its requests come one after the other, so a client that sends the next has
// read the whole response before it, and what was kept of that can go if it is large. Its fields are for its requests alone.
type connection struct {
	of     *replayStore // of the session of the last response; nil when that was no stream
	number string       // of the stream
}

type connectionKey struct{}

// largeStream is how many bytes of a stream are kept no longer than they have to be.
const largeStream = 64 << 10

// connectionOf returns the connection of a request; nil when others may have read the response, or may be reading it:
// a proxy or another replica before us, or the streams of HTTP/2.
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

// next says that the next request of a session has come.
func (c *connection) next(s *session) {
	if c == nil {
		return
	}
	if c.of == s.replays && c.of != nil {
		c.of.wasRead(c.number)
	}
	c.of = nil
}

// ended says that a response has ended, over this connection or without it.
func (c *connection) ended(r *response) {
	if c != nil && r.whole {
		c.of, c.number = r.replay.of, r.replay.number
	}
}

// wasRead says that the client has read a stream, which is kept no longer if it is large.
func (k *replayStore) wasRead(number string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.all, func(s *replayBuffer) bool { return s.number == number })
	if i >= 0 && k.all[i].over && k.all[i].pieces >= largeStream/keptPiece {
		k.drop(k.all[i])
	}
}
