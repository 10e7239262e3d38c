package mcp

import (
	"bytes"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"toolctl.dev/toolctl/internal/jsontext"
)

// envelope is a JSON-RPC message whose parts are left as they came.
type envelope struct {
	id, params, result, failure json.RawMessage
	method                      string
}

// isCall reports whether the message wants an answer.
func (m *envelope) isCall() bool { return len(m.id) > 0 && string(m.id) != "null" }

// error returns the error of a response; nil when it has none.
func (m *envelope) error() *jsonrpc.Error {
	if len(m.failure) == 0 {
		return nil
	}
	e := &jsonrpc.Error{}
	if err := json.Unmarshal(m.failure, e); err != nil {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "the server answered with an error that cannot be read"}
	}
	return e
}

// split finds the parts of a message without decoding them: every message passes
// through here on its way to the SDK, which decodes it again. What is within the
// parts is not checked. False says that data is not an object.
func split(data []byte) (m envelope, ok bool) {
	p := bytes.TrimLeft(data, jsontext.Space)
	if len(p) == 0 || p[0] != '{' {
		return m, false
	}
	p = bytes.TrimLeft(p[1:], jsontext.Space)
	for len(p) > 0 && p[0] == '"' {
		n := jsontext.SkipString(p, 0)
		key := p[1:max(n-1, 1)]
		p = bytes.TrimLeft(p[n:], jsontext.Space)
		if len(p) == 0 || p[0] != ':' {
			return m, false
		}
		p = bytes.TrimLeft(p[1:], jsontext.Space)
		n = jsontext.SkipValue(p, 0)
		value := json.RawMessage(p[:n:n])
		switch string(key) {
		case "id":
			m.id = value
		case "method":
			if json.Unmarshal(value, &m.method) != nil {
				return m, false
			}
		case "params":
			m.params = value
		case "result":
			m.result = value
		case "error":
			m.failure = value
		}
		p = bytes.TrimLeft(p[n:], jsontext.Space)
		if len(p) > 0 && p[0] == '}' {
			return m, len(bytes.TrimLeft(p[1:], jsontext.Space)) == 0
		}
		if n == 0 || len(p) == 0 || p[0] != ',' {
			return m, false
		}
		p = bytes.TrimLeft(p[1:], jsontext.Space)
	}
	return m, len(p) > 0 && p[0] == '}'
}
