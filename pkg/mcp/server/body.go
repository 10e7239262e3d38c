package server

import (
	"context"
	"errors"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"toolctl.dev/toolctl/internal/budget"
	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// received is the message of a POST, which is read here and nowhere else.
type received struct {
	message wire.Message
	batch   []wire.Message // in place of message; see session.answerBatch
	err     error          // why it is no message
	body    *admission.Body
}

func receive(r *http.Request) *received {
	in := &received{body: admission.BodyOf(r)}
	switch text := in.body.Bytes(); {
	case r.Method != http.MethodPost:
	case len(text) == 0:
		in.err = errEmpty
	default:
		if in.message, in.err = wire.Parse(text); errors.Is(in.err, wire.ErrBatch) {
			if in.batch, in.err = wire.ParseBatch(text); len(in.batch) == 0 {
				in.err = wire.ErrInvalid
			}
		}
	}
	return in
}

// version is that of the protocol which the message names; "" when it names none.
func (in *received) version() string {
	version, _ := in.message.Meta.Text(wire.MetaVersion)
	return version
}

// memory returns the context of a call that gives back what was taken of the memory budget
// for its request once its arguments are checked. release gives back what then remains.
func (s *Server) memory(ctx context.Context, r *request) (_ context.Context, release func(), err error) {
	if r.body != nil {
		if share := r.body.Memory(); share != nil {
			return budget.With(ctx, share), share.Release, nil
		}
	}
	ctx, release, err = s.admission.Memory(budget.With(ctx, nil), r.principal, r.Body)
	if err != nil {
		return nil, nil, &jsonrpc.Error{Code: codeUnavailable, Message: err.Error()}
	}
	return ctx, release, nil
}
