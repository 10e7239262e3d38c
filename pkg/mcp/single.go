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

// A server with spec.replicas one runs in one of several processes. The others open a session with
// the process that has it, which is a server of MCP to them: see [Upstreams.Relay].

// Single says which process has a server that only one may have.
type Single interface {
	// Hold makes this process the one that has a server, until Free, and returns nil; or it
	// returns a stream to [Relay.Serve] in the process that has it. lost is called when another
	// process may have the server from now on, although Free was not called. Callers are told the error.
	Hold(ctx context.Context, server v1.Key, lost func()) (io.ReadWriteCloser, error)
	// Free says that nothing of the server runs here any more.
	Free(server v1.Key)
}

// ownerUnreachableError says that the process which has the server cannot be reached now.
type ownerUnreachableError struct{ error }

func (e *ownerUnreachableError) Unwrap() error { return e.error }

// single reports whether only one of several processes may have the server.
func (u *upstream) single() bool {
	return u.owner.opts.Single != nil && u.spec.Spec.Replicas == v1.ReplicasOne
}

// singleLink starts the server's child, or is the way to the process that did.
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
		free() // another may have what it takes to start it
		return nil, err
	}
	l.free = free
	h.has(l)
	return l, nil
}

// singletonChild is what runs here of a server that only one process may have, from the start of its child: that
// may be long before there is a session.
type singletonChild struct {
	mu   sync.Mutex
	link *pipeLink // nil before
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

// lose ends it, at once: another process may have the server from now on.
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

// moved takes a session out of use whose process hands the server over, and opens the next.
func (u *upstream) moved(s *session) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.retire(s)
	u.reopen()
}

const (
	reopenEvery = 250 * time.Millisecond
	reopenFor   = 15 * time.Second // longer than the lease of a process that died
)

// reopen opens the session that all share, once the process that had the server has handed it over
// or its lease has ended: some process must have it, be there calls or not. It is called under mu.
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

// relayedKey is the member of _meta by which a question of the server names the request that it is asked for.
const relayedKey = "toolctl.dev/request"

// relayedOf finds the exchange that a question of a relayed server is asked for, and takes its name out
// of the parameters.
func (s *session) relayedOf(params json.RawMessage) (*exchange, json.RawMessage) {
	var members map[string]json.RawMessage
	var meta map[string]json.RawMessage
	var id string
	if json.Unmarshal(params, &members) != nil || json.Unmarshal(orNull(members["_meta"]), &meta) != nil || json.Unmarshal(orNull(meta[relayedKey]), &id) != nil {
		return nil, params
	}
	delete(meta, relayedKey)
	if delete(members, "_meta"); len(meta) > 0 {
		members["_meta"], _ = json.Marshal(meta) // which was JSON
	}
	rest, err := json.Marshal(members)
	if err != nil {
		return nil, params
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.exchanges[id], rest
}

// HandOver ends the servers that only one process may have, each with its last call, or when ctx
// ends: then those that are being started, too. [Single.Free] is told of the ends of their processes.
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

// local returns the sessions of a server that only one process may have, when it is this one.
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
