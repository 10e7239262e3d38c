package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"toolctl.dev/toolctl/internal/budget"
	"toolctl.dev/toolctl/pkg/admission"
)

// headerShare leads from a request to what was taken of the memory budget for it, through
// the SDK, whose contexts are not those of requests. What a client sends by this name is dropped.
const headerShare = "Toolctl-Share"

const (
	// patience is how long a request waits for memory.
	patience = budget.Patience
	// readPiece is what the reading of large requests is counted in; the first is free.
	readPiece = 64 << 10
)

// newReading bounds what is held of requests that are not read to their end, to a quarter
// of the memory budget; one principal may always send one request.
func (d *endpoint) newReading() *admission.Quota {
	largest := int(d.opts.MaxBody/readPiece) + 1
	all := max(largest, int(d.server.budget.Total()/4/readPiece))
	q := admission.NewQuota("large requests", all, d.server.opts.PrincipalShare)
	q.AtLeast(largest)
	return q
}

// receive reads the body of a request and takes of the memory budget what it costs to
// decode, until done is called. When it cannot it answers the request.
func (d *endpoint) receive(w http.ResponseWriter, r *http.Request, who string) (body []byte, done func(), ok bool) {
	if err := d.bodies.Take(who); err != nil {
		unavailable(w, err.Error())
		return nil, nil, false
	}
	defer d.bodies.Give(who)
	d.server.throttle.Wait(r.Context(), who, 0, d.server.calls.Running.Full(who))
	pieces := 0
	defer func() {
		for range pieces {
			d.reading.Give(who)
		}
	}()
	ctx, cancel := context.WithTimeout(r.Context(), bodyTimeout)
	defer cancel()
	body, err := d.read(w, r, func() error {
		if err := d.reading.Wait(ctx, who, patience); err != nil {
			return err
		}
		pieces++
		return nil
	})
	var large *http.MaxBytesError
	var full *admission.QuotaError
	switch {
	case err == nil:
	case errors.As(err, &large):
		http.Error(w, "the request is too large", http.StatusRequestEntityTooLarge)
	case errors.As(err, &full):
		unavailable(w, full.Error())
	case errors.Is(err, os.ErrDeadlineExceeded):
		http.Error(w, "the request took too long to arrive", http.StatusRequestTimeout)
	default:
		http.Error(w, "the request could not be read", http.StatusBadRequest)
	}
	if err != nil {
		return nil, nil, false
	}
	share, err := d.server.budget.TakeSoon(r.Context(), who, budget.Weigh(body))
	switch {
	case errors.Is(err, budget.ErrTooLarge):
		http.Error(w, "the request is too large to decode: "+err.Error(), http.StatusServiceUnavailable)
		return nil, nil, false
	case err != nil:
		unavailable(w, budget.ErrFull.Error())
		return nil, nil, false
	}
	if len(body) >= admission.SmallRequest { // as the next of its principal, which waits for what is taken here
		d.server.throttle.Wait(r.Context(), who, len(body), false)
	}
	id := rand.Text()
	d.server.weights.Store(id, share)
	r.Header.Set(headerShare, id)
	return body, func() {
		if _, mine := d.server.weights.LoadAndDelete(id); mine {
			share.Release()
		}
	}, true
}

// read takes the whole body within its time and size. It calls more for each piece but the first.
func (d *endpoint) read(w http.ResponseWriter, r *http.Request, more func() error) ([]byte, error) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout)) // not every connection has deadlines
	defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	in := http.MaxBytesReader(w, r.Body, d.opts.MaxBody)
	var body bytes.Buffer
	for {
		if n := min(r.ContentLength, readPiece); body.Len() == 0 && n > 0 {
			body.Grow(int(n) + bytes.MinRead)
		}
		n, err := io.CopyN(&body, in, readPiece)
		switch {
		case errors.Is(err, io.EOF):
			return body.Bytes(), nil
		case err != nil:
			return nil, err
		case n == readPiece:
			if err := more(); err != nil {
				return nil, err
			}
		}
	}
}

// weighed returns the context of a call that gives back what was taken of the memory budget
// for its request once its arguments are checked. What then remains is the caller's to release.
func (s *Server) weighed(ctx context.Context, extra *sdk.RequestExtra, args []byte) (context.Context, *budget.Share, error) {
	if extra != nil {
		if kept, ok := s.weights.LoadAndDelete(extra.Header.Get(headerShare)); ok {
			share, _ := kept.(*budget.Share)
			return budget.With(ctx, share), share, nil
		}
	}
	share, err := s.budget.TakeSoon(ctx, principalOf(extra), budget.Weigh(args))
	if err != nil {
		if !errors.Is(err, budget.ErrTooLarge) {
			err = budget.ErrFull
		}
		return nil, nil, &jsonrpc.Error{Code: codeUnavailable, Message: err.Error()}
	}
	return budget.With(ctx, share), share, nil
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
