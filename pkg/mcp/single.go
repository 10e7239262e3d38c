package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

// A server with spec.replicas one runs in only one of several processes. The other processes open a session
// with the owning process, which acts as an MCP server for them; see [Upstreams.Relay].

// Single determines which process owns a server that only one process may run.
type Single interface {
	// Hold makes this process the owner of a server until Free, and returns nil. If another process is the
	// owner, Hold returns a stream to [Relay.Serve] in that process. lost is called when another process may
	// become the owner although Free was not called. Callers see the error.
	Hold(ctx context.Context, server v1.Key, lost func()) (io.ReadWriteCloser, error)
	// Free means that the server no longer runs in this process.
	Free(server v1.Key)
}

// ownerUnreachableError means that the owner of a server cannot be reached now.
type ownerUnreachableError struct{ error }

func (e *ownerUnreachableError) Unwrap() error { return e.error }

// single reports whether only one of several processes may run the server.
func (u *upstream) single() bool {
	return u.owner.opts.Single != nil && u.spec.Spec.Replicas == v1.ReplicasOne
}

// singleLink starts the server's child, or opens a link to the process that did.
func (u *upstream) singleLink(ctx context.Context, r *resolver, s *session) (link, error) {
	var h singletonChild
	rwc, err := u.owner.opts.Single.Hold(ctx, u.key, h.lose)
	if err != nil {
		return nil, &ownerUnreachableError{u.unavailable("%v", err)}
	}
	if rwc != nil {
		r.mask(s)
		s.remote = true
		return u.dialled(s, rwc), nil
	}
	free := func() { u.owner.opts.Single.Free(u.key) }
	l, err := u.childLink(r, s)
	if err != nil {
		free() // another process may be able to start it
		return nil, err
	}
	l.free = free
	h.has(l)
	return l, nil
}

// singletonChild is the child of a server that only one process may run. It exists from the start of the
// child, which may be long before there is a session.
type singletonChild struct {
	mu   sync.Mutex
	link *pipeLink // nil before the child has started
	lost bool
}

func (h *singletonChild) has(l *pipeLink) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.link = l
	if h.lost {
		l.lose()
	}
}

// lose kills the child at once, because another process may now become the owner.
func (h *singletonChild) lose() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost = true
	if h.link != nil {
		h.link.lose()
	}
}

func (l *pipeLink) lose() {
	l.s.fail(errors.New("the lease of this replica ended, so another replica may run the server"))
	l.child.Kill()
}

// moved takes a session out of use whose process hands the server over, and opens the next session.
func (u *upstream) moved(s *session) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.retire(s)
	u.reopen()
}

const (
	reopenEvery = 250 * time.Millisecond
	reopenFor   = 15 * time.Second // longer than the lease of a crashed process
)

// reopen opens the shared session after the previous owner has handed the server over or its lease has
// expired. It does so even without calls, because one process must always own the server. It is called
// under mu.
func (u *upstream) reopen() {
	if u.ended || u.reopening {
		return
	}
	u.reopening = true
	u.running.Go(func() {
		ctx, cancel := context.WithTimeout(u.life, reopenFor)
		defer cancel()
		defer func() {
			u.mu.Lock()
			u.reopening = false
			u.mu.Unlock()
		}()
		for {
			s, err := u.acquire(ctx, &u.shared)
			if err == nil {
				u.release(s)
				return
			}
			var elsewhere *ownerUnreachableError
			if !errors.As(err, &elsewhere) || sleep(ctx, reopenEvery) != nil {
				return
			}
		}
	})
}

// relayedKey is the member of _meta with which a request of the server refers to the request it belongs to.
const relayedKey = "toolctl.dev/request"

// relayedOf finds the exchange that a request of a relayed server belongs to, and removes the reference
// from the parameters.
func (s *session) relayedOf(params json.RawMessage) (*exchange, json.RawMessage) {
	var members map[string]json.RawMessage
	var meta map[string]json.RawMessage
	var id string
	if json.Unmarshal(params, &members) != nil || json.Unmarshal(orNull(members["_meta"]), &meta) != nil || json.Unmarshal(orNull(meta[relayedKey]), &id) != nil {
		return nil, params
	}
	delete(meta, relayedKey)
	if delete(members, "_meta"); len(meta) > 0 {
		members["_meta"], _ = json.Marshal(meta) // it was valid JSON
	}
	rest, err := json.Marshal(members)
	if err != nil {
		return nil, params
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.exchanges[id], rest
}

// HandOver ends the servers that only one process may run, each after its last call. When ctx ends, it ends
// the others too, including servers that are starting. The end of each process leads to [Single.Free].
func (u *Upstreams) HandOver(ctx context.Context) {
	var waiting []*session
	defer func() {
		for _, up := range u.all() {
			if up.single() && ctx.Err() != nil {
				up.close()
			}
		}
	}()
	for _, up := range u.all() {
		for _, s := range up.local() {
			up.mu.Lock()
			up.retire(s)
			up.mu.Unlock()
			waiting = append(waiting, s)
		}
	}
	for _, s := range waiting {
		select {
		case <-s.done:
		case <-ctx.Done():
			s.shut(errUnused)
		}
	}
}

// local returns this process's sessions with a server that only one process may run.
func (u *upstream) local() (all []*session) {
	if !u.single() {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for s := range u.sessions {
		if l, ok := s.link.(*pipeLink); ok && l.child != nil {
			all = append(all, s)
		}
	}
	return all
}
