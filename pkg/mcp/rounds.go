package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/callctx"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// A server of MCP 2026-07-28 does not send requests to its client. It answers a request by requesting
// input, and then gets the request again with that input (basic/utilities, multi round-trip requests).

const (
	// maxRounds limits how often a server may request input for one request.
	maxRounds = 16
	// maxInputs limits the number of inputs that a server may request at once.
	maxInputs = 64
	// maxBusy limits how often a server may defer a request without requesting input.
	maxBusy = 3
)

// inputRequired is a result that requests input.
type inputRequired struct {
	Requests map[string]InputRequest `json:"inputRequests"`
	State    *string                 `json:"requestState"`
}

// typeOf returns the input that a result requests, or nil if it requests no input. unknown is the type of a
// result that a client must not accept, because the type is unknown (MCP 2026-07-28, basic) or its members
// cannot be read.
func typeOf(answer *wire.Message) (asks *inputRequired, unknown string) {
	switch kind := string(answer.Result.Get("resultType")); kind {
	case "", `"complete"`:
		return nil, ""
	case `"input_required"`:
		if in := new(inputRequired); json.Unmarshal(answer.Body, in) == nil {
			return in, ""
		}
		return nil, kind
	default:
		return nil, kind
	}
}

// finalOf returns the input that a response requests, or nil if the response is final. The error means that
// its type is unknown.
func (u *upstream) finalOf(s *session, answer *wire.Message) (*inputRequired, error) {
	asks, unknown := typeOf(answer)
	if unknown == "" || !s.modern() {
		return asks, nil
	}
	text := "the server sent a result of an unknown type (resultType): " + clip.Bytes(unknown, 100)
	if unknown == `"input_required"` {
		text = "the server asks for input that cannot be read (inputRequests, requestState)"
	}
	return nil, u.refused(s, &wire.Error{Message: text})
}

// fulfil gets the input that a result requests from the client, and returns the parameters to add when the
// request is sent again.
func (u *upstream) fulfil(ctx context.Context, s *session, r *clientRequest, in *inputRequired, round int) ([]param, error) {
	refuse := func(format string, args ...any) error {
		return u.refused(s, &wire.Error{Message: fmt.Sprintf(format, args...)})
	}
	switch {
	case round > maxRounds:
		return nil, refuse("the server asked for input more than %d times", maxRounds)
	case len(in.Requests) > maxInputs:
		return nil, refuse("the server asked for %d inputs at once; at most %d are passed on", len(in.Requests), maxInputs)
	}
	var fields []param
	if in.State != nil {
		fields = append(fields, param{"requestState", *in.State})
	}
	if len(in.Requests) == 0 {
		if err := sleep(ctx, retryWait<<min(round, maxBusy)); err != nil {
			return nil, err
		}
	} else {
		for name, asked := range in.Requests {
			if r == nil || r.peer.Ask == nil || !r.peer.Can.allow(asked) {
				text := fmt.Sprintf("the server asks for input (%s, as %q), which the client does not support", clip.Bytes(asked.Method, 100), clip.Bytes(name, 100))
				return nil, u.refused(s, &wire.Error{Code: wire.CodeNeedsCapability, Message: text, Data: needed(asked.Method)})
			}
		}
		resume := callctx.PauseDeadlines(ctx)
		for name, asked := range in.Requests {
			in.Requests[name] = asked.of(u, s.masksOf(r), r.peer)
		}
		answers, err := r.peer.Ask(ctx, in.Requests)
		resume()
		var said *v1.MCPError
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.As(err, &said):
			return nil, refuse("the client did not provide the input that the server asked for: %s", said.Message)
		case err != nil:
			return nil, refuse("the client did not provide the input that the server asked for: %v", err)
		}
		fields = append(fields, param{"inputResponses", answers})
	}
	return fields, nil
}

// needed returns the capability that a client needs to answer a request.
func needed(method string) json.RawMessage {
	name, _, _ := strings.Cut(method, "/")
	if !slices.Contains([]string{wire.MethodElicit, wire.MethodSample, wire.MethodRoots}, method) {
		return nil
	}
	return fmt.Appendf(nil, `{"requiredCapabilities":{%q:{}}}`, name)
}
