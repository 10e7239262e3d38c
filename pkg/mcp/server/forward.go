package server

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/mcp/wire"
	"toolctl.dev/toolctl/pkg/replica"
)

// Sessions and suspended calls live in the process that created them. With replicas, a request for a
// session or call of another process is forwarded to that process; see pkg/replica.

const sessionEnded = "session not found: its replica has ended; start a new session with initialize"

// forwardToOwner forwards a request if its session or suspended call belongs to another replica, and
// refuses it if no replica created the session. It returns false if this replica must answer the request.
func (d *endpoint) forwardToOwner(w http.ResponseWriter, r *http.Request, in *received, c caller) bool {
	m := d.server.opts.Replica
	if m == nil {
		return false
	}
	if c.forwarded != nil {
		if !c.forwarded.Matches(r.Header, in.body.Bytes()) {
			http.Error(w, replica.ErrCredential.Error(), http.StatusUnauthorized)
			return true
		}
		return false // a request is forwarded only once
	}
	modern := wire.IsModern(r.Header.Get(wire.HeaderVersion))
	var owner string
	var ok bool
	if !modern {
		id := r.Header.Get(wire.HeaderSession)
		if id == "" {
			return false
		}
		if owner, _, ok = m.OpenSession(id); !ok {
			http.Error(w, noSuchSession, http.StatusNotFound)
			return true
		}
	} else {
		state, _ := in.message.Params.Text("requestState")
		if owner, _, ok = m.OpenCall(state); !ok {
			return false // no state, or the handler reports the error in it
		}
	}
	if owner == m.ID() {
		return false
	}
	d.forward(w, r, owner, in, c)
	return true
}

// forward sends a request to the replica that owns its session or call, and passes the response on.
func (d *endpoint) forward(w http.ResponseWriter, r *http.Request, owner string, in *received, from caller) {
	if err := d.forwards.Take(from.Principal); err != nil {
		unavailable(w, err.Error())
		return
	}
	defer d.forwards.Give(from.Principal)
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer d.server.calls.OnStop(func() { cancel(admission.ErrStopping) })()
	c := replica.Caller{Toolset: from.toolset, Principal: from.Principal, Groups: from.Groups, Scopes: from.scopes, Expires: from.Expires}
	begun, err := d.server.opts.Replica.Forward(w, r.WithContext(ctx), owner, in.body.Bytes(), c)
	if err == nil || r.Context().Err() != nil {
		return
	}
	log := d.server.opts.Logger.With(slog.String("replica", owner), slog.Any("error", err))
	log.DebugContext(r.Context(), "a request was not forwarded, or its answer was lost")
	id := in.message.ID
	switch gone := errors.Is(err, replica.ErrGone); {
	case begun && strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream"):
		if id != nil { // only a request needs a response
			out := &response{w: w, control: http.NewResponseController(w)}
			_ = out.event(lost(id, err), false) // the client may have gone
		}
	case begun:
		panic(http.ErrAbortHandler) // an incomplete response must not look complete
	case in.message.Method == methodCall && errors.Is(err, replica.ErrLost):
		writeAnswer(w, http.StatusOK, lost(id, err)) // with another status, clients would repeat the call
	case errors.Is(err, admission.ErrStopping):
		d.refuse(w, r)
	case gone && wire.IsModern(r.Header.Get(wire.HeaderVersion)):
		writeAnswer(w, http.StatusBadRequest, write(id, nil, invalidParams("requestState: the replica that held its call has ended, and the call with it: send the request again without it")).text)
	case gone:
		http.Error(w, sessionEnded, http.StatusNotFound)
	case errors.Is(err, replica.ErrLate):
		log.WarnContext(r.Context(), "a request was not carried out")
		unavailable(w, err.Error())
	case errors.Is(err, replica.ErrAway):
		log.WarnContext(r.Context(), "a replica cannot be reached")
		unavailable(w, "the replica that has the session or call cannot be reached: try again later")
	default:
		log.WarnContext(r.Context(), "the leases cannot be read")
		unavailable(w, "the replica that has the session or call cannot be found: try again later")
	}
}

// lost returns the response for a call whose response from the other replica was lost.
func lost(id json.RawMessage, err error) []byte {
	why := "the replica that made the call cannot be reached"
	switch {
	case errors.Is(err, admission.ErrStopping):
		why = "this replica is stopping, and the replica that made the call has not answered"
	case errors.Is(err, replica.ErrGone):
		why = "the replica that made the call has ended"
	}
	return write(id, nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: why + ": the tool may have run. Find out before you repeat the call"}).text
}

// enterForwarded accepts requests that other replicas forward. Those replicas have checked the origin and
// counted the request toward the rate of its caller.
func (d *endpoint) enterForwarded(r *http.Request) admission.Entry {
	f, err := d.server.opts.Replica.Accept(r)
	if err == nil && d.opts.authenticates() && f.Caller.Principal == "" {
		err = replica.ErrCredential
	}
	if err != nil {
		return admission.TurnAway(admission.Stranger(r), replica.StatusOf(err), err.Error())
	}
	if d.server.calls.Stopping() {
		return admission.TurnAway(admission.Caller{}, http.StatusMisdirectedRequest, admission.ErrStopping.Error())
	}
	c := caller{Caller: Caller{Principal: f.Caller.Principal, Groups: f.Caller.Groups, Expires: f.Caller.Expires}, scopes: f.Caller.Scopes, toolset: f.Caller.Toolset, forwarded: f}
	if !d.server.set.Load().admits(&c) {
		return missing(admission.Caller{Name: c.Principal})
	}
	return admission.Entry{Caller: admission.Caller{Name: c.Principal}, Answer: d.serve(c)}
}
