// Package wire reads and writes the messages that both sides of MCP exchange: JSON-RPC messages and their
// content blocks. A message is parsed in one pass, which checks the JSON grammar and records where the
// members begin and end, so that no second pass is needed. [Calls] and [Running] hold the open requests of
// a connection.
package wire

import (
	"encoding/json"
	"errors"
	"fmt"

	"toolctl.dev/toolctl/internal/jsontext"
)

// Message is a request, a notification or a response. Its raw values are parts of the parsed text.
type Message struct {
	ID     json.RawMessage // nil for a notification
	Method string          // "" for a response
	Params Object          // of a request or a notification
	Result Object          // of a response without an error
	Error  json.RawMessage // of a response with an error
	Body   json.RawMessage // all of params or result
	Meta   Object          // _meta in params or result
}

// Object holds the members of an object in their original order.
type Object []Member

// Member is one member of an object.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Get returns the value of a member, or nil if there is none.
func (o Object) Get(name string) json.RawMessage {
	for i := range o {
		if o[i].Name == name {
			return o[i].Value
		}
	}
	return nil
}

// Text returns a string member. It returns false if the member exists and is not a string.
func (o Object) Text(name string) (string, bool) {
	raw := o.Get(name)
	if len(raw) == 0 || raw[0] != '"' {
		return "", raw == nil
	}
	return jsontext.Unquote(raw), true
}

// ParseObject parses an object. It returns false for any other text.
func ParseObject(text []byte) (o Object, ok bool) {
	p := parser{text: text}
	i := jsontext.SkipSpace(text, 0)
	end := p.members(i, 1, &o, nil)
	return o, o != nil && end >= 0 && jsontext.SkipSpace(text, end) == len(text)
}

// JSON returns the object as JSON text.
func (o Object) JSON() json.RawMessage {
	text := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(append(text, jsontext.Of(m.Name)...), ':'), m.Value...)
	}
	return append(text, '}')
}

// Kind is the kind of a message in JSON-RPC 2.0.
type Kind int

// The kinds of messages.
const (
	Invalid Kind = iota
	Call
	Notification
	Reply
)

// Kind returns the kind of the message.
func (m *Message) Kind() Kind {
	switch {
	case m.Method != "" && m.ID == nil:
		return Notification
	case m.Method != "" && plainID(m.ID):
		return Call
	case m.Method == "" && m.ID != nil && (m.Error != nil) != (m.Body != nil):
		return Reply
	}
	return Invalid
}

var (
	// ErrSyntax means that a text is not JSON.
	ErrSyntax = errors.New("not JSON")
	// ErrInvalid means that a text is JSON but not a message.
	ErrInvalid = errors.New("not a JSON-RPC 2.0 message")
	// ErrBatch is the [ErrInvalid] of an array, which [ParseBatch] reads.
	ErrBatch = fmt.Errorf("%w: it is an array", ErrInvalid)
)

// Parse reads one message.
func Parse(text []byte) (m Message, err error) {
	p := parser{text: text}
	i := jsontext.SkipSpace(text, 0)
	switch {
	case i == len(text):
		return m, ErrSyntax
	case text[i] == '{':
	case !jsontext.Valid(text):
		return m, ErrSyntax
	case text[i] == '[':
		return m, ErrBatch
	default:
		return m, ErrInvalid
	}
	var version, method, params, result json.RawMessage
	end := p.object(i, 1, func(name []byte, at int) (e int) {
		var into *json.RawMessage
		switch string(name) {
		case "jsonrpc":
			into = &version
		case "id":
			into = &m.ID
		case "method":
			into = &method
		case "params":
			into = &params
			e = p.members(at, 2, &m.Params, &m.Meta)
		case "result":
			into = &result
			e = p.members(at, 2, &m.Result, &m.Meta)
		case "error":
			into = &m.Error
		}
		if e == 0 {
			e = p.value(at, 2)
		}
		if e >= 0 && into != nil {
			p.twice = p.twice || *into != nil
			*into = text[at:e:e]
		}
		return e
	})
	if end < 0 || jsontext.SkipSpace(text, end) != len(text) {
		return Message{}, ErrSyntax
	}
	if string(m.ID) == "null" {
		m.ID = nil
	}
	if len(method) > 0 && method[0] == '"' {
		m.Method = name(method[1 : len(method)-1])
	}
	mixed := m.Method == "" && params != nil || m.Method != "" && (result != nil || m.Error != nil)
	if m.Body = params; result != nil {
		m.Body = result
	}
	if string(version) != `"2.0"` || mixed || p.twice || m.Kind() == Invalid {
		return m, ErrInvalid
	}
	return m, nil
}

// ParseBatch reads the messages of an array, which versions of MCP before 2025-06-18 may send.
func ParseBatch(text []byte) ([]Message, error) {
	var all []json.RawMessage
	if json.Unmarshal(text, &all) != nil {
		return nil, ErrSyntax
	}
	batch := make([]Message, len(all))
	for i, one := range all {
		var err error
		if batch[i], err = Parse(one); err != nil {
			return nil, err
		}
	}
	return batch, nil
}

type parser struct {
	text  []byte
	twice bool // a member with a meaning in JSON-RPC occurred twice
}

// members parses an object like value, and collects its members and the members of its _meta.
func (p *parser) members(i, depth int, into, meta *Object) int {
	if i >= len(p.text) || p.text[i] != '{' {
		return p.value(i, depth)
	}
	all := make(Object, 0, 8)
	end := p.object(i, depth, func(key []byte, at int) (e int) {
		if meta != nil && string(key) == "_meta" {
			e = p.members(at, depth+1, meta, nil)
		} else {
			e = p.value(at, depth+1)
		}
		if e >= 0 {
			n := name(key)
			p.twice = p.twice || names[n] != "" && all.Get(n) != nil
			all = append(all, Member{n, p.text[at:e:e]})
		}
		return e
	})
	*into = all
	return end
}

// object parses an object. member gets the position at which a value begins, and returns the position at
// which it ends.
func (p *parser) object(i, depth int, member func(name []byte, at int) int) int {
	text := p.text
	if depth > 10_000 {
		return -1
	}
	i = jsontext.SkipSpace(text, i+1)
	if i < len(text) && text[i] == '}' {
		return i + 1
	}
	for {
		if i >= len(text) || text[i] != '"' {
			return -1
		}
		end := jsontext.ValidString(text, i)
		if end < 0 {
			return -1
		}
		name := text[i+1 : end-1]
		if i = jsontext.SkipSpace(text, end); i >= len(text) || text[i] != ':' {
			return -1
		}
		if i = member(name, jsontext.SkipSpace(text, i+1)); i < 0 {
			return -1
		}
		if i = jsontext.SkipSpace(text, i); i >= len(text) {
			return -1
		}
		switch text[i] {
		case ',':
			i = jsontext.SkipSpace(text, i+1)
		case '}':
			return i + 1
		default:
			return -1
		}
	}
}

func (p *parser) value(i, depth int) int { return jsontext.ValidValue(p.text, i, depth) }

// names are the names of members and methods in most messages. Their strings are shared, so that they need
// no allocation. A member with one of these names must not occur twice, because two readers could choose
// different values.
var names = map[string]string{}

func init() {
	for _, n := range []string{"name", "arguments", "_meta", "requestState", "inputResponses", "cursor", "uri", "content", "structuredContent", "isError", "resultType", "progressToken",
		"tools/call", "tools/list", "ping", "initialize", "notifications/cancelled", "notifications/progress", "protocolVersion", "capabilities", "clientInfo",
		MetaVersion, MetaClient, MetaCapabilities, MetaLogLevel, MetaServer} {
		names[n] = n
	}
}

// name returns the text between the quotes of a JSON string.
func name(raw []byte) string {
	if n, ok := names[string(raw)]; ok {
		return n
	}
	return jsontext.Unquote(append(append([]byte{'"'}, raw...), '"'))
}

// plainID reports whether an ID is a string, or an integer that a double represents exactly.
func plainID(id json.RawMessage) bool {
	if len(id) == 0 {
		return false
	}
	if id[0] == '"' {
		return true
	}
	for _, c := range id {
		if (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return len(id) < 17
}
