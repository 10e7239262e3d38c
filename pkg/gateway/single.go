package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/replica"
)

// singles manages the MCP servers that run on one replica only (spec.replicas one). Without replicas this gateway runs
// them all.
type singles struct {
	*Gateway

	mu       sync.Mutex
	held     int // servers that run here, or may be about to
	draining bool
}

var _ mcp.Single = (*singles)(nil)

// leaseOf returns the name of the lease of a server.
func leaseOf(server v1.Key) string { return "server/" + server.Namespace + "/" + server.Name }

const (
	// holdEvery is the interval at which Hold retries a server that another replica may be about to give up.
	holdEvery = 50 * time.Millisecond
	// holdDead is how long a call waits for the lease of a replica that died.
	holdDead = 300 * time.Millisecond
)

// Hold implements [mcp.Single].
func (s *singles) Hold(ctx context.Context, server v1.Key, lost func()) (io.ReadWriteCloser, error) {
	m := s.replica
	if m == nil {
		if s.opts.Replicas != nil {
			return nil, errors.New("this replica has not joined the other replicas yet")
		}
		return nil, nil
	}
	began := time.Now()
	for {
		owner, err := s.own(ctx, server, lost)
		switch {
		case err != nil && !errors.Is(err, replica.ErrBusy):
			s.log.Warn("cannot read which replica runs an mcp server", "server", server.Name, "namespace", server.Namespace, "error", err)
			return nil, errors.New("cannot read which replica runs it: call again later")
		case err == nil && owner == m.ID():
			s.log.Info("this replica runs the mcp server", "server", server.Name, "namespace", server.Namespace)
			return nil, nil
		case err == nil:
			stream, err := m.Open(ctx, owner, leaseOf(server))
			if err == nil {
				s.log.Info("another replica runs the mcp server", "server", server.Name, "namespace", server.Namespace, "replica", owner)
				return &toOwner{stream}, nil
			}
			gone := errors.Is(err, replica.ErrGone)
			if gone && time.Since(began) > holdDead {
				return nil, errors.New("the replica that ran it has ended: another replica will start it within seconds; call again then")
			}
			if !gone && !errors.Is(err, replica.ErrMoved) {
				s.log.Warn("the replica that runs an mcp server cannot be reached", "server", server.Name, "namespace", server.Namespace, "replica", owner, "error", err)
				return nil, errors.New("the replica that runs it cannot be reached now: call again later")
			}
		}
		select {
		case <-time.After(holdEvery):
		case <-ctx.Done():
			return nil, errors.New("the replica that runs the MCP server is handing it over; this takes as long as the running calls: call again later")
		}
	}
}

// own acquires the lease of a server, and counts the server until Free.
func (s *singles) own(ctx context.Context, server v1.Key, lost func()) (owner string, err error) {
	s.mu.Lock()
	if s.draining { // the member also refuses then, and only returns the owner
		s.mu.Unlock()
		return s.replica.Own(ctx, leaseOf(server), func() {})
	}
	s.held++
	s.mu.Unlock()
	owner, err = s.replica.Own(ctx, leaseOf(server), lost)
	if err != nil || owner != s.replica.ID() {
		s.free()
	}
	return owner, err
}

func (s *singles) free() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held--
}

// Free implements [mcp.Single].
func (s *singles) Free(server v1.Key) {
	if s.replica != nil {
		s.replica.Disown(leaseOf(server))
		s.free()
	}
}

// route returns the route for requests of other replicas to the servers of this one.
func (s *singles) route() admission.Route {
	return admission.Route{Pattern: replica.StreamPath, Kind: admission.Of(admission.KindStream), MaxBody: 1, Enter: func(r *http.Request) admission.Entry {
		name, err := s.replica.AcceptStream(r)
		if err != nil {
			return admission.TurnAway(admission.Stranger(r), replica.StatusOf(err), err.Error())
		}
		return admission.Entry{Answer: func(w http.ResponseWriter, r *http.Request) { s.relay(w, r, name) }}
	}}
}

func (s *singles) relay(w http.ResponseWriter, r *http.Request, name string) {
	replica.TakeStream(w, r, name, func(ctx context.Context, name string) (func(io.ReadWriteCloser), error) {
		namespace, local, ok := strings.Cut(strings.TrimPrefix(name, "server/"), "/")
		if !ok {
			return nil, &v1.NotFoundError{Kind: v1.KindMCPServer, Name: name}
		}
		relay, err := s.servers.Relay(ctx, v1.Key{Kind: v1.KindMCPServer, Namespace: namespace, Name: local})
		if errors.Is(err, mcp.ErrElsewhere) {
			return nil, replica.ErrMoved
		}
		if err != nil {
			return nil, err
		}
		return func(stream io.ReadWriteCloser) { relay.Serve(s.tasks.ctx, stream) }, nil
	})
}

// handOver hands the servers that run here over to the other replicas: each one when its calls have ended, or when the
// server's time to stop is over.
func (s *singles) handOver(ctx context.Context) {
	if s.replica == nil {
		return
	}
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	for { // repeated for servers that were just being started
		s.servers.HandOver(ctx)
		s.mu.Lock()
		held := s.held
		s.mu.Unlock()
		if held == 0 {
			return
		}
		time.Sleep(holdEvery)
	}
}

// toOwner is a stream to the replica that runs a server. That replica answers all running requests before it closes the
// stream, so unanswered requests are lost.
type toOwner struct{ io.ReadWriteCloser }

func (s *toOwner) Read(p []byte) (int, error) {
	n, err := s.ReadWriteCloser.Read(p)
	if err != nil {
		err = errors.New("the replica that ran the server has ended: it is unknown whether the running calls were carried out")
	}
	return n, err
}
