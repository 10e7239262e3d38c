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

// received is the parsed message of a POST. Only receive reads the body.
type received struct {
	message wire.Message
	batch   []wire.Message // set instead of message; see session.answerBatch
	err     error          // why the body is not a message
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

// version returns the protocol version that the message names; "" without one.
func (in *received) version() string {
	version, _ := in.message.Meta.Text(wire.MetaVersion)
	return version
}

// memory returns the context for a call, which returns the memory reserved for its request once its
// arguments are checked. release returns the rest.
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
