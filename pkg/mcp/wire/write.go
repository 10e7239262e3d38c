package wire

import (
	"bytes"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"toolctl.dev/toolctl/internal/jsontext"
)

// Error is a JSON-RPC error.
type Error = jsonrpc.Error

// Failure decodes the error of an answer. It returns nil if there is none.
func (m *Message) Failure() *Error {
	if m.Error == nil {
		return nil
	}
	e := &Error{}
	if json.Unmarshal(m.Error, e) != nil {
		return &Error{Code: jsonrpc.CodeInvalidRequest, Message: "the error in the response cannot be read"}
	}
	return e
}

// Writer is a value that writes its own JSON, on one line.
type Writer interface{ WriteJSON(*bytes.Buffer) error }

// Request returns a request, or a notification if id is empty.
func Request(id, method string, params any) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(`{"jsonrpc":"2.0"`)
	if id != "" {
		b.WriteString(`,"id":"` + id + `"`)
	}
	b.WriteString(`,"method":"` + method + `"`)
	if raw, ok := params.(json.RawMessage); params != nil && !(ok && len(raw) == 0) {
		b.WriteString(`,"params":`)
		if err := Write(&b, params); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// Cancelled returns the notification that cancels a request.
func Cancelled(id string, reason error) []byte {
	text, _ := Request("", MethodCancelled, struct { // strings have a JSON form
		ID     string `json:"requestId"`
		Reason string `json:"reason"`
	}{id, reason.Error()})
	return text
}

// Answer appends the answer to a request: the error if there is one, otherwise the result.
func Answer(b *bytes.Buffer, id json.RawMessage, result any, failed *Error) error {
	if id == nil {
		id = json.RawMessage("null")
	}
	b.WriteString(`{"jsonrpc":"2.0","id":`)
	b.Write(id)
	if failed != nil {
		b.WriteString(`,"error":`)
		result = failed
	} else {
		b.WriteString(`,"result":`)
	}
	if err := Write(b, result); err != nil {
		return err
	}
	b.WriteByte('}')
	return nil
}

// Write appends a value as JSON on one line. Raw JSON keeps its digits and the order of its keys.
func Write(b *bytes.Buffer, v any) error {
	switch v := v.(type) {
	case json.RawMessage:
		return json.Compact(b, v)
	case Writer:
		return v.WriteJSON(b)
	}
	return jsontext.Write(b, v)
}
