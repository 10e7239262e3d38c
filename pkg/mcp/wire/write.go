package wire

import (
	"bytes"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"toolctl.dev/toolctl/internal/jsontext"
)

// Error is a JSON-RPC error.
type Error = jsonrpc.Error

// Failure reads the error of an answer; nil when it has none.
func (m *Message) Failure() *Error {
	if m.Error == nil {
		return nil
	}
	e := &Error{}
	if json.Unmarshal(m.Error, e) != nil {
		return &Error{Code: jsonrpc.CodeInvalidRequest, Message: "the answer is an error that cannot be read"}
	}
	return e
}

// Request writes a request; a notification when id is empty.
func Request(id, method string, params any) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(`{"jsonrpc":"2.0"`)
	if id != "" {
		b.WriteString(`,"id":"` + id + `"`)
	}
	b.WriteString(`,"method":"` + method + `"`)
	if raw, ok := params.(json.RawMessage); params != nil && !(ok && len(raw) == 0) {
		b.WriteString(`,"params":`)
		if err := put(&b, params); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// put writes a value, and what is JSON already as it is.
func put(b *bytes.Buffer, v any) error {
	if raw, ok := v.(json.RawMessage); ok {
		return json.Compact(b, raw)
	}
	return jsontext.Write(b, v)
}

// Answer writes an answer with a result or an error into b.
func Answer(b *bytes.Buffer, id json.RawMessage, member string, write func(*bytes.Buffer) error) error {
	if id == nil {
		id = json.RawMessage("null")
	}
	b.WriteString(`{"jsonrpc":"2.0","id":`)
	b.Write(id)
	b.WriteString(`,"` + member + `":`)
	if err := write(b); err != nil {
		return err
	}
	b.WriteByte('}')
	return nil
}
