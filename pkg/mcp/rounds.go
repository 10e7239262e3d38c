package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/callctx"
	"toolctl.dev/toolctl/internal/clip"
)

// A server of MCP 2026-07-28 does not call its client: it answers a request with what
// it wants to know, and gets the request once more with the answers (basic/utilities,
// multi round-trip requests).

const (
	// maxRounds is how often a server may ask for input to one request.
	maxRounds = 16
	// maxInputs is how much it may ask for at once.
	maxInputs = 64
	// maxBusy is how often a server may put a request off without asking for anything.
	maxBusy = 3
)

// inputRequired is a result that asks for input.
type inputRequired struct {
	Type     json.RawMessage         `json:"resultType"`
	Requests map[string]InputRequest `json:"inputRequests"`
	State    *string                 `json:"requestState"`
}

// typeOf returns what a result asks for, nil when it asks for nothing, and the type of one that a
// client must not take for a result, because it does not know the type (MCP 2026-07-28, basic) or
// cannot read what is asked for.
func typeOf(result json.RawMessage) (asks *inputRequired, unknown string) {
	switch n := bytes.Count(result, []byte(`"resultType"`)); {
	case n == 0, n == 1 && bytes.Contains(result, []byte(`"resultType":"complete"`)):
		return nil, ""
	}
	in := &inputRequired{}
	err := json.Unmarshal(result, in) // members of another type stay empty
	switch string(in.Type) {
	case "", `"complete"`:
		return nil, ""
	case `"input_required"`:
		if err == nil {
			return in, ""
		}
	}
	return nil, string(in.Type)
}

// finalOf returns what a result asks for, nil when it is final, and an error when it is of
// a type that is not known.
func (u *upstream) finalOf(s *session, result json.RawMessage) (*inputRequired, error) {
	asks, unknown := typeOf(result)
	if unknown == "" || !s.modern() {
		return asks, nil
	}
	text := "the server sent a result of a type that is not known (resultType): " + clip.Bytes(unknown, 100)
	if unknown == `"input_required"` {
		text = "the server asks for input in a form that cannot be read (inputRequests, requestState)"
	}
	return nil, u.refused(s, &answer{err: &jsonrpc.Error{Message: text}})
}

// codeNeedsCapability is that of a request which needs what the client did not say
// that it can do (MCP 2026-07-28, basic).
const codeNeedsCapability = -32021

// codeNeedsURL is that of a request before which a person must visit an address (MCP specification,
// client/elicitation).
const codeNeedsURL = -32042

// fulfil has the client answer what a result asks for, and returns the parameters
// that are added to the request when it is made again.
func (u *upstream) fulfil(ctx context.Context, s *session, r *clientRequest, in *inputRequired, round int) ([]param, error) {
	refuse := func(format string, args ...any) error {
		return u.refused(s, &answer{err: &jsonrpc.Error{Message: fmt.Sprintf(format, args...)}})
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
				text := fmt.Sprintf("the server asks for input (%s, as %q), which the client did not say that it can give", clip.Bytes(asked.Method, 100), clip.Bytes(name, 100))
				return nil, u.refused(s, &answer{err: &jsonrpc.Error{Code: codeNeedsCapability, Message: text, Data: needed(asked.Method)}})
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
			return nil, refuse("the client did not give the input that the server asked for: %s", said.Message)
		case err != nil:
			return nil, refuse("the client did not give the input that the server asked for: %v", err)
		}
		fields = append(fields, param{"inputResponses", answers})
	}
	return fields, nil
}

// needed says which capability a client must have to answer a request.
func needed(method string) json.RawMessage {
	name, _, _ := strings.Cut(method, "/")
	if !slices.Contains([]string{methodElicit, methodSample, methodRoots}, method) {
		return nil
	}
	return fmt.Appendf(nil, `{"requiredCapabilities":{%q:{}}}`, name)
}
