package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/mcp"
)

// A client of MCP 2026-07-28 gets no requests. It gets questions in the response to its own request, and
// sends the request again with the answers. Meanwhile the call is suspended here, whether its server waits
// in a session of the older protocol version or will get a new request too. For policies and the audit log
// it thus remains one call in all protocol versions, with the arguments that were checked at its start.

// suspendedCall is a call whose client may get questions.
type suspendedCall struct {
	id     string
	bound  []byte // what later rounds must repeat
	cancel context.CancelCauseFunc
	moved  chan struct{} // holds one element after a new question
	done   chan struct{}
	// Valid once done is closed.
	res answer
	err error

	mu     sync.Mutex
	at     *request // the request being served; nil between two rounds
	rounds int      // number of rounds answered with questions
	open   map[string]*question
	early  map[string]json.RawMessage // answers that arrived before their questions
	expiry *time.Timer
}

// question is one question to the client.
type question struct {
	mcp.InputRequest
	of   *questions
	name string // key in of.answers
}

// questions are several questions that were sent together.
type questions struct {
	left    int
	answers map[string]json.RawMessage
	done    chan struct{} // closed when all questions are answered
}

// suspendedCalls holds the calls that wait for their clients.
type suspendedCalls struct {
	seals seals
	mu    sync.Mutex
	set   map[string]*suspendedCall
	off   bool
}

// gather is how long to wait after a question for further questions, to send them together.
const gather = 10 * time.Millisecond

var errNoAnswer = errors.New("the client did not answer in time")

// suspend carries out a request in rounds. p is its client, whose hooks suspend sets.
func (s *Server) suspend(ctx context.Context, r *request, p *mcp.Peer, do handler) (answer, error) {
	var input map[string]json.RawMessage
	if err := r.read("inputResponses", &input); err != nil {
		return nil, err
	}
	maps.DeleteFunc(input, func(_ string, answer json.RawMessage) bool { return v1.JSONKind(answer) != "object" })
	state, err := r.text("requestState")
	if err != nil {
		return nil, err
	}
	bound := binding(r)
	if state != "" {
		h, err := s.resume(state, bound, r)
		if err != nil {
			return nil, err
		}
		if !h.answer(input) {
			return s.handOut(h)
		}
		if h.asks() { // other questions are still open
			h.move()
		}
		return s.wait(ctx, h)
	}
	h := &suspendedCall{id: rand.Text(), bound: bound, moved: make(chan struct{}, 1), done: make(chan struct{}), at: r, open: map[string]*question{}, early: input}
	p.Ask, p.Notify = h.ask, notify(h.where)
	held, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	h.cancel = cancel
	go func() {
		defer close(h.done)
		defer cancel(nil)
		defer func() {
			if p := recover(); p != nil {
				s.opts.Logger.ErrorContext(held, "panic while a request was served", slog.String("method", r.Method), slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
				h.res, h.err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
			}
		}()
		h.res, h.err = s.carryOut(context.WithValue(held, suspendedKey{}, h), r, p, do)
	}()
	return s.wait(ctx, h)
}

type suspendedKey struct{}

// current returns the request through which a call can reach its client now; false without such a request.
func current(ctx context.Context, first *request) (*request, bool) {
	h, _ := ctx.Value(suspendedKey{}).(*suspendedCall)
	if h == nil {
		return first, true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at, h.at != nil
}

// where returns the channel for notifications of the call.
func (h *suspendedCall) where() (channel, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at == nil {
		return nil, false
	}
	return h.at.to, true
}

// ask is the hook for questions of the call's server.
func (h *suspendedCall) ask(ctx context.Context, all map[string]mcp.InputRequest) (map[string]json.RawMessage, error) {
	of := &questions{left: len(all), answers: map[string]json.RawMessage{}, done: make(chan struct{})}
	h.mu.Lock()
	mine := map[string]*question{}
	for name, q := range all {
		if early, ok := h.early[name]; ok {
			delete(h.early, name) // an early answer counts only once
			of.take(name, early)
			continue
		}
		public := name
		for n := 2; h.open[public] != nil; n++ {
			public = name + "-" + strconv.Itoa(n)
		}
		h.open[public] = &question{q, of, name}
		mine[public] = h.open[public]
	}
	h.mu.Unlock()
	if len(mine) > 0 {
		h.move()
	}
	select {
	case <-of.done:
		return of.answers, nil
	case <-ctx.Done():
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.open, func(name string, q *question) bool { return mine[name] == q })
	return nil, context.Cause(ctx)
}

// move wakes the request that serves the round.
func (h *suspendedCall) move() {
	select {
	case h.moved <- struct{}{}:
	default:
	}
}

// take records one answer. It is called under mu of the call.
func (q *questions) take(name string, answer json.RawMessage) {
	q.answers[name] = answer
	if q.left--; q.left == 0 {
		close(q.done)
	}
}

// answer passes the answers of a round to the callers of ask. It returns false if the call cannot continue,
// because all its questions are still open.
func (h *suspendedCall) answer(input map[string]json.RawMessage) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	before, goesOn := len(h.open), false
	for name, answer := range input {
		if q := h.open[name]; q != nil && v1.JSONKind(answer) == "object" {
			delete(h.open, name)
			q.of.take(q.name, answer)
			goesOn = goesOn || q.of.left == 0
		}
	}
	return goesOn || before == 0 // the call has ended, or its server withdrew the questions
}

// wait returns the result of a call, or the questions to its client.
func (s *Server) wait(ctx context.Context, h *suspendedCall) (answer, error) {
	for {
		select {
		case <-h.done:
			s.drop(h)
			return h.res, h.err
		case <-ctx.Done(): // the client has gone, so the call ends too
			h.cancel(context.Cause(ctx))
			<-h.done
			s.drop(h)
			return nil, ctx.Err()
		case <-h.moved:
		}
		t := time.NewTimer(gather)
		select {
		case <-h.done:
		case <-ctx.Done():
		case <-t.C:
			if h.asks() {
				return s.handOut(h)
			}
		}
		t.Stop()
	}
}

func (h *suspendedCall) asks() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.open) > 0
}

// inputRequired is an InputRequiredResult (MCP 2026-07-28).
type inputRequired struct {
	base
	Requests map[string]mcp.InputRequest `json:"inputRequests"`
	State    string                      `json:"requestState"`
}

// handOut ends a round with the open questions of the call.
func (s *Server) handOut(h *suspendedCall) (answer, error) {
	s.suspended.mu.Lock()
	off := s.suspended.off
	if !off {
		if s.suspended.set == nil {
			s.suspended.set = map[string]*suspendedCall{}
		}
		s.suspended.set[h.id] = h
	}
	s.suspended.mu.Unlock()
	if off {
		h.cancel(admission.ErrStopping)
		<-h.done
		s.drop(h)
		return nil, &jsonrpc.Error{Code: codeUnavailable, Message: admission.ErrStopping.Error()}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	res := &inputRequired{base: base{Type: "input_required"}, Requests: map[string]mcp.InputRequest{}}
	for name, q := range h.open {
		res.Requests[name] = q.InputRequest
	}
	h.at = nil
	h.rounds++
	res.State = s.suspended.seals.seal(sealed{h.id, h.rounds, h.bound})
	h.expiry = time.AfterFunc(askTimeout, func() {
		h.mu.Lock()
		waits := h.at == nil
		h.mu.Unlock()
		if waits {
			h.cancel(errNoAnswer)
			<-h.done
			s.drop(h)
		}
	})
	return res, nil
}

// resume finds the call for the state of a request, and starts its next round.
func (s *Server) resume(state string, bound []byte, at *request) (*suspendedCall, error) {
	refuse := func(text string) error { return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: text} }
	what, err := s.suspended.seals.open(state, bound)
	if err != nil {
		return nil, refuse(err.Error())
	}
	s.suspended.mu.Lock()
	h := s.suspended.set[what.Call]
	s.suspended.mu.Unlock()
	if h == nil {
		return nil, refuse("requestState: its call has ended: send the request again without it")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at != nil || what.Round != h.rounds {
		return nil, refuse("requestState: it was already used: send the one of the latest answer")
	}
	h.expiry.Stop()
	h.at = at
	return h, nil
}

// drop removes a call that has ended.
func (s *Server) drop(h *suspendedCall) {
	s.suspended.mu.Lock()
	defer s.suspended.mu.Unlock()
	delete(s.suspended.set, h.id)
}

// endSuspended ends the calls that wait for their clients, because no client can continue them.
func (s *Server) endSuspended() {
	s.suspended.mu.Lock()
	s.suspended.off = true
	all := slices.Collect(maps.Values(s.suspended.set))
	s.suspended.mu.Unlock()
	all = slices.DeleteFunc(all, func(h *suspendedCall) bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.at != nil {
			return true
		}
		h.expiry.Stop()
		h.cancel(admission.ErrStopping)
		return false
	})
	for _, h := range all {
		<-h.done
		s.drop(h)
	}
}
