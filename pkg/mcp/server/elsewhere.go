package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/replica"
)

// Sessions and held calls live in the process that began them. With replicas a request of one that
// another process has is forwarded to that one; see pkg/replica.

type forwardedKey struct{}

const sessionEnded = "session not found: the replica that had it has ended; begin a new one with initialize"

// elsewhere answers a request of a session or of a held call that another replica has, or that no
// replica made; false says that it is answered here.
func (d *endpoint) elsewhere(w http.ResponseWriter, r *http.Request, body []byte, who string) bool {
	m := d.server.opts.Replica
	if m == nil {
		return false
	}
	if f, ok := r.Context().Value(forwardedKey{}).(*replica.Forwarded); ok {
		if !f.Matches(r.Header, body) {
			http.Error(w, replica.ErrCredential.Error(), http.StatusUnauthorized)
			return true
		}
		return false // it is never forwarded again
	}
	modern := isModern(r.Header.Get(headerVersion))
	var owner string
	var ok bool
	if !modern {
		id := r.Header.Get(headerSession)
		if id == "" {
			return false
		}
		if owner, _, ok = m.OpenSession(id); !ok {
			http.Error(w, "session not found", http.StatusNotFound)
			return true
		}
	} else if owner, _, ok = m.OpenCall(stateOf(body)); !ok {
		return false // there is none, or the handler says what is wrong with it
	}
	if owner == m.ID() {
		return false
	}
	d.forward(w, r, owner, body, who, modern)
	return true
}

// stateOf is the requestState of a request; empty without one.
func stateOf(body []byte) string {
	if !bytes.Contains(body, []byte(`"requestState"`)) {
		return ""
	}
	var m struct {
		Params struct {
			State string `json:"requestState"`
		} `json:"params"`
	}
	_ = json.Unmarshal(body, &m) // fields of another type stay empty
	return m.Params.State
}

// forward has the owner of a session or a call answer a request.
func (d *endpoint) forward(w http.ResponseWriter, r *http.Request, owner string, body []byte, who string, modern bool) {
	if err := d.forwards.Take(who); err != nil {
		unavailable(w, err.Error())
		return
	}
	defer d.forwards.Give(who)
	var c replica.Caller
	if known, ok := r.Context().Value(callerKey{}).(caller); ok {
		c = replica.Caller{Principal: known.principal, Groups: known.groups, Scopes: known.scopes, Expires: known.expires}
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer d.server.calls.OnStop(func() { cancel(admission.ErrStopping) })()
	begun, err := d.server.opts.Replica.Forward(w, r.WithContext(ctx), owner, body, c)
	if err == nil || r.Context().Err() != nil {
		return
	}
	log := d.server.opts.Logger.With(slog.String("replica", owner), slog.Any("error", err))
	log.DebugContext(r.Context(), "a request was not forwarded, or its answer did not come")
	first := peek(body)
	call := toolCall{id: orNull(first.id)}
	switch gone := errors.Is(err, replica.ErrGone); {
	case begun && strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream"):
		if string(call.id) != "null" { // the answer to a request is what is missing
			(&response{w: w, control: http.NewResponseController(w)}).last(call.lost(err))
		}
	case begun:
		panic(http.ErrAbortHandler) // half an answer must not look whole
	case first.method == methodCall && errors.Is(err, replica.ErrLost):
		writeAnswer(w, http.StatusOK, call.lost(err)) // other statuses have clients make it again
	case errors.Is(err, admission.ErrStopping):
		d.refuse(w, r)
	case gone && modern:
		writeAnswer(w, statusOf(jsonrpc.CodeInvalidParams), call.failure(jsonrpc.CodeInvalidParams, "requestState: the replica that held its call has ended, and the call with it: make the request anew without it"))
	case gone:
		http.Error(w, sessionEnded, http.StatusNotFound)
	case errors.Is(err, replica.ErrLate):
		log.WarnContext(r.Context(), "a request was not carried out")
		unavailable(w, err.Error())
	case errors.Is(err, replica.ErrAway):
		log.WarnContext(r.Context(), "a replica cannot be reached")
		unavailable(w, "the replica that has it cannot be reached now: try again later")
	default:
		log.WarnContext(r.Context(), "the leases cannot be read")
		unavailable(w, "the replica that has it cannot be found now: try again later")
	}
}

// lost answers a call whose answer did not come from the replica that made it.
func (c *toolCall) lost(err error) []byte {
	why := "the replica that made the call cannot be reached"
	switch {
	case errors.Is(err, admission.ErrStopping):
		why = "this replica stops before the one that made the call answered"
	case errors.Is(err, replica.ErrGone):
		why = "the replica that made the call has ended"
	}
	return c.failure(jsonrpc.CodeInternalError, why+": whether the call was carried out is not known. Find out before you make it again")
}

// last ends a stream with an event.
func (r *response) last(message []byte) { _ = r.event(oneLine(message), false) } // the client may be gone

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
	return admission.Entry{Caller: admission.Caller{Name: f.Caller.Principal}, Answer: func(w http.ResponseWriter, r *http.Request) {
		ctx, next := context.WithValue(r.Context(), forwardedKey{}, f), http.Handler(http.HandlerFunc(d.serve))
		if f.Caller.Principal != "" {
			c := caller{principal: f.Caller.Principal, groups: f.Caller.Groups, scopes: f.Caller.Scopes, expires: f.Caller.Expires}
			r.Header.Set("Authorization", "Bearer forwarded") // where the SDK looks for one; nobody reads it
			ctx, next = context.WithValue(ctx, callerKey{}, c), asCaller(next)
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	}}
}

// asCaller tells the SDK who sends a request, as the context says.
func asCaller(next http.Handler) http.Handler {
	return auth.RequireBearerToken(func(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
		c, _ := ctx.Value(callerKey{}).(caller)
		return &auth.TokenInfo{UserID: c.principal, Scopes: c.scopes}, nil
	}, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(next)
}
