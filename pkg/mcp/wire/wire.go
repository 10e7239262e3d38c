// Package wire reads a JSON-RPC message once: one pass holds it to the grammar of JSON and
// notes where its members, those of params or result, and those of their _meta stand.
package wire

import (
	"encoding/json"
	"errors"
	"fmt"

	"toolctl.dev/toolctl/internal/jsontext"
)

// Message is a request, a notification or a response. All that is raw is part of the text.
type Message struct {
	ID     json.RawMessage // nil for a notification
	Method string          // "" for a response
	Params Object          // of a request or a notification
	Result Object          // of a response that is good
	Error  json.RawMessage // of one that is not
	Body   json.RawMessage // params or result, whole
	Meta   Object          // _meta of either
	Size   int
}

// Object is the members of an object, in the order in which they came.
type Object []Member

// Member is one of them; Value is nil in place of one that came twice.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Get returns the value of a member; nil without it.
func (o Object) Get(name string) json.RawMessage {
	for i := range o {
		if o[i].Name == name {
			return o[i].Value
		}
	}
	return nil
}

// Text returns a member that is a string.
func (o Object) Text(name string) (string, bool) {
	raw := o.Get(name)
	if len(raw) == 0 || raw[0] != '"' {
		return "", raw == nil
	}
	return jsontext.Unquote(raw), true
}

// Kind says what a message is.
type Kind int

// The kinds of messages.
const (
	Invalid Kind = iota
	Call
	Notification
	Reply
)

// Kind says what the message is, as JSON-RPC 2.0 has it.
func (m *Message) Kind() Kind {
	switch {
	case m.Method != "" && m.ID == nil:
		return Notification
	case m.Method != "" && plainID(m.ID):
		return Call
	case m.Method == "" && m.ID != nil && (m.Error != nil) != (m.Result != nil || m.Body != nil):
		return Reply
	}
	return Invalid
}

var (
	// ErrSyntax says that a text is not JSON.
	ErrSyntax = errors.New("not JSON")
	// ErrInvalid says that it is JSON, and no message.
	ErrInvalid = errors.New("not a JSON-RPC 2.0 message")
	// ErrBatch is the [ErrInvalid] of an array, which [ParseBatch] reads.
	ErrBatch = fmt.Errorf("%w: it is an array", ErrInvalid)
)

// Parse reads one message.
func Parse(text []byte) (m Message, err error) {
	p := parser{text: text}
	m.Size = len(text)
	i := jsontext.SkipSpace(text, 0)
	if i == len(text) {
		return m, ErrSyntax
	}
	if text[i] != '{' {
		switch {
		case !jsontext.Valid(text):
			return m, ErrSyntax
		case text[i] == '[':
			return m, ErrBatch
		}
		return m, ErrInvalid
	}
	var version []byte
	var twice, params, result bool
	end := p.object(i, 1, func(name []byte, at int) int {
		var into *json.RawMessage
		switch string(name) {
		case "jsonrpc":
			e := p.value(at, 2)
			if e >= 0 {
				version = text[at:e]
			}
			return e
		case "id":
			into = &m.ID
		case "method":
			e := p.value(at, 2)
			if e >= 0 && text[at] == '"' {
				m.Method = method(text[at:e])
			}
			return e
		case "params":
			twice, params = twice || m.Body != nil, true
			e := p.members(at, 2, &m.Params, &m.Meta)
			if e >= 0 {
				m.Body = text[at:e:e]
			}
			return e
		case "result":
			twice, result = twice || m.Body != nil, true
			e := p.members(at, 2, &m.Result, &m.Meta)
			if e >= 0 {
				m.Body = text[at:e:e]
			}
			return e
		case "error":
			into = &m.Error
		default:
			return p.value(at, 2)
		}
		e := p.value(at, 2)
		if e >= 0 {
			twice = twice || *into != nil
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
	mixed := m.Method == "" && params || m.Method != "" && (result || m.Error != nil)
	if string(version) != `"2.0"` || twice || mixed || p.twice || m.Kind() == Invalid {
		return m, ErrInvalid
	}
	return m, nil
}

// ParseBatch reads the messages of an array, as versions of MCP before 2025-06-18 may send them.
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
	twice bool // a member that means something came twice
}

// members is value for an object whose members are noted, and those of its _meta.
func (p *parser) members(i, depth int, into, meta *Object) int {
	if i >= len(p.text) || p.text[i] != '{' {
		return p.value(i, depth)
	}
	all := make(Object, 0, 8)
	end := p.object(i, depth, func(name []byte, at int) int {
		var e int
		if meta != nil && string(name) == "_meta" {
			e = p.members(at, depth+1, meta, nil)
		} else {
			e = p.value(at, depth+1)
		}
		if e >= 0 {
			n, ours := names[string(name)]
			if !ours {
				n = known(name)
			} else if all.Get(n) != nil {
				p.twice = true
			}
			all = append(all, Member{n, p.text[at:e:e]})
		}
		return e
	})
	*into = all
	return end
}

// object reads an object; member returns where the value ends that begins at a place.
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

// names are those that a message has over and over; they cost no allocation.
var names = map[string]string{}

func init() {
	for _, n := range []string{"name", "arguments", "_meta", "requestState", "inputResponses", "cursor", "uri", "content", "structuredContent", "isError", "resultType", "progressToken",
		"tools/call", "tools/list", "ping", "initialize", "notifications/cancelled", "notifications/progress", "protocolVersion", "capabilities", "clientInfo",
		"io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientInfo", "io.modelcontextprotocol/clientCapabilities", "io.modelcontextprotocol/logLevel", "io.modelcontextprotocol/serverInfo"} {
		names[n] = n
	}
}

func known(name []byte) string {
	if n, ok := names[string(name)]; ok {
		return n
	}
	return jsontext.Unquote(append(append([]byte{'"'}, name...), '"'))
}

func method(raw []byte) string {
	if n, ok := names[string(raw[1:len(raw)-1])]; ok {
		return n
	}
	return jsontext.Unquote(raw)
}

// plainID reports whether an id is a text or a whole number that a double holds.
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
