package mcp

import (
	"bytes"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
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
	p := bytes.TrimLeft(data, space)
	if len(p) == 0 || p[0] != '{' {
		return m, false
	}
	p = bytes.TrimLeft(p[1:], space)
	for len(p) > 0 && p[0] == '"' {
		n := skipString(p)
		key := p[1:max(n-1, 1)]
		p = bytes.TrimLeft(p[n:], space)
		if len(p) == 0 || p[0] != ':' {
			return m, false
		}
		p = bytes.TrimLeft(p[1:], space)
		n = skipValue(p)
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
		p = bytes.TrimLeft(p[n:], space)
		if len(p) > 0 && p[0] == '}' {
			return m, len(bytes.TrimLeft(p[1:], space)) == 0
		}
		if n == 0 || len(p) == 0 || p[0] != ',' {
			return m, false
		}
		p = bytes.TrimLeft(p[1:], space)
	}
	return m, len(p) > 0 && p[0] == '}'
}

const space = " \t\r\n"

// skipString returns the length of the string that p starts with.
func skipString(p []byte) int {
	for i := 1; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(p)
}

// skipValue returns the length of the value that p starts with.
func skipValue(p []byte) int {
	depth := 0
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '"':
			i += skipString(p[i:]) - 1
			if depth == 0 {
				return min(i+1, len(p))
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return i // the end of what holds a plain value
			} else if depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
		}
	}
	return len(p)
}
