package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"toolctl.dev/toolctl/pkg/mcp"
)

// The SDK reads what goes between servers and clients into types of its own, which
// know no fields but theirs and no large integers. What passes through here keeps its
// form: requests to clients are put on the wire as they came, and what clients answer
// goes through the SDK with a copy of itself as text, under metaRaw in its _meta.

// metaRaw is the key of that copy. What a client sends under it is overwritten.
const metaRaw = "toolctl.dev/raw"

type rawKey struct{}

// rawParams are the parameters of a request to a client as they came.
type rawParams struct {
	sdk.ParamsBase
	raw json.RawMessage
}

// MarshalJSON returns them.
func (p *rawParams) MarshalJSON() ([]byte, error) {
	if len(p.raw) == 0 {
		return []byte("{}"), nil
	}
	return p.raw, nil
}

// sendRaw is the SDK's way out: what ask made of a request is replaced by the request.
func sendRaw(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if q, ok := ctx.Value(rawKey{}).(mcp.InputRequest); ok && q.Method == method {
			if ss, ok := req.GetSession().(*sdk.ServerSession); ok {
				req = &sdk.ServerRequest[*rawParams]{Session: ss, Params: &rawParams{raw: q.Params}}
			}
		}
		return next(ctx, method, req)
	}
}

// rawAnswer returns an answer of a client as it came.
func rawAnswer(res sdk.Result) (json.RawMessage, error) {
	if text, ok := res.GetMeta()[metaRaw].(string); ok {
		return json.RawMessage(text), nil
	}
	return json.Marshal(res)
}

// keepRaw adds the copy to a message of a client: to the result of an answer, and to
// the parameters of a request that brings answers. Every other message stays as it is.
func keepRaw(body []byte) []byte {
	if !bytes.Contains(body, []byte(`"result"`)) && !bytes.Contains(body, []byte(`"inputResponses"`)) {
		return body
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(body, &m) != nil {
		return body
	}
	var err error
	switch {
	case m["method"] == nil && m["result"] != nil:
		m["result"], err = withCopy(m["result"], m["result"])
	case m["params"] != nil:
		m["params"], err = keepInput(m["params"])
	default:
		return body
	}
	if err != nil {
		return body
	}
	out, err := json.Marshal(m)
	if err != nil {
		return body
	}
	return out
}

// keepInput adds the copy of inputResponses to the parameters of a request.
func keepInput(params json.RawMessage) (json.RawMessage, error) {
	var p struct {
		Input json.RawMessage `json:"inputResponses"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, err
	}
	if p.Input == nil {
		return nil, errors.New("no answers")
	}
	return withCopy(params, p.Input)
}

// withCopy returns an object with a copy of something in its _meta.
func withCopy(object, of json.RawMessage) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(object, &fields); err != nil {
		return nil, err
	}
	if fields == nil {
		return nil, errors.New("no object")
	}
	var meta map[string]json.RawMessage
	if err := json.Unmarshal(orNull(fields["_meta"]), &meta); err != nil {
		return nil, err
	}
	if meta == nil {
		meta = map[string]json.RawMessage{}
	}
	text, err := json.Marshal(string(of))
	if err != nil {
		return nil, err
	}
	meta[metaRaw] = text
	if fields["_meta"], err = json.Marshal(meta); err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}
