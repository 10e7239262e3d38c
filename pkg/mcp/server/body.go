package server

import (
	"context"
	"crypto/rand"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"toolctl.dev/toolctl/internal/budget"
	"toolctl.dev/toolctl/pkg/admission"
)

// headerShare leads from a request to what was taken of the memory budget for it, through
// the SDK, whose contexts are not those of requests. What a client sends by this name is dropped.
const headerShare = "Toolctl-Share"

// received returns the body of a request that was admitted. Until done is called, weighed finds what was taken of
// the memory budget for it.
func (d *endpoint) received(r *http.Request) (body []byte, done func()) {
	in, id := admission.BodyOf(r), rand.Text()
	d.server.weights.Store(id, in)
	r.Header.Set(headerShare, id)
	return in.Bytes(), func() { d.server.weights.Delete(id) }
}

// weighed returns the context of a call that gives back what was taken of the memory budget
// for its request once its arguments are checked. release gives back what then remains.
func (s *Server) weighed(ctx context.Context, extra *sdk.RequestExtra, args []byte) (_ context.Context, release func(), err error) {
	if extra != nil {
		if kept, ok := s.weights.LoadAndDelete(extra.Header.Get(headerShare)); ok {
			if share := kept.(*admission.Body).Memory(); share != nil {
				return budget.With(ctx, share), share.Release, nil
			}
		}
	}
	ctx, release, err = s.admission.Memory(budget.With(ctx, nil), principalOf(extra), args)
	if err != nil {
		return nil, nil, &jsonrpc.Error{Code: codeUnavailable, Message: err.Error()}
	}
	return ctx, release, nil
}

// afterSession calls begun with the session of an id, and ended when it has ended; ended alone, at once, when there
// is none.
func (s *Server) afterSession(id string, begun func(*sdk.ServerSession), ended func()) {
	s.followers.mu.Lock()
	defer s.followers.mu.Unlock()
	if !s.followers.closing && id != "" {
		for ss := range s.sdk.Sessions() {
			if ss.ID() == id {
				begun(ss)
				s.followers.running.Go(func() { _ = ss.Wait(); ended() }) // why it ended is the client's business
				return
			}
		}
	}
	ended()
}
