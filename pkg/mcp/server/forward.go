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

// Sessions and suspended calls live in the process that began them. With replicas, a request of one that
// another process has is forwarded to that process; see pkg/replica.

const sessionEnded = "session not found: its replica has ended; start a new session with initialize"

// forwardToOwner answers a request of a session or of a suspended call that another replica has, or that no
// replica made; false says that it is answered here.
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
		return false // it is never forwarded again
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
			http.Error(w, "session not found", http.StatusNotFound)
			return true
		}
	} else {
		state, _ := in.message.Params.Text("requestState")
		if owner, _, ok = m.OpenCall(state); !ok {
			return false // there is none, or the handler says what is wrong with it
		}
	}
	if owner == m.ID() {
		return false
	}
	d.forward(w, r, owner, in, c)
	return true
}

// forward has the owner of a session or a call answer a request.
func (d *endpoint) forward(w http.ResponseWriter, r *http.Request, owner string, in *received, from caller) {
	if err := d.forwards.Take(from.Principal); err != nil {
		unavailable(w, err.Error())
		return
	}
	defer d.forwards.Give(from.Principal)
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer d.server.calls.OnStop(func() { cancel(admission.ErrStopping) })()
	c := replica.Caller{Principal: from.Principal, Groups: from.Groups, Scopes: from.scopes, Expires: from.Expires}
	begun, err := d.server.opts.Replica.Forward(w, r.WithContext(ctx), owner, in.body.Bytes(), c)
	if err == nil || r.Context().Err() != nil {
		return
	}
	log := d.server.opts.Logger.With(slog.String("replica", owner), slog.Any("error", err))
	log.DebugContext(r.Context(), "a request was not forwarded, or its answer was lost")
	id := in.message.ID
	switch gone := errors.Is(err, replica.ErrGone); {
	case begun && strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream"):
		if id != nil { // the answer to a request is what is missing
			out := &response{w: w, control: http.NewResponseController(w)}
			_ = out.event(lost(id, err), false) // the client may be gone
		}
	case begun:
		panic(http.ErrAbortHandler) // half an answer must not look whole
	case in.message.Method == methodCall && errors.Is(err, replica.ErrLost):
		writeAnswer(w, http.StatusOK, lost(id, err)) // other statuses have clients make it again
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

// lost answers a call whose answer did not come from the replica that made it.
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

// enterForwarded takes requests that other replicas forward. Where they came from was checked by those, which
// also counted them in the rate of their caller.
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
	c := caller{Caller: Caller{Principal: f.Caller.Principal, Groups: f.Caller.Groups, Expires: f.Caller.Expires}, scopes: f.Caller.Scopes, forwarded: f}
	return admission.Entry{Caller: admission.Caller{Name: c.Principal}, Answer: d.serve(c)}
}
