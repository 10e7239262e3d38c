package provider

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/agent"
)

// Parameters reads Request.Parameters. A nil map is none. What the request itself says
// in fields of these names is not to be overwritten by a parameter.
func Parameters(raw json.RawMessage, reserved ...string) (map[string]json.RawMessage, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, nil
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("parameters must be a JSON object: %w", err)
	}
	for _, name := range reserved {
		if _, ok := m[name]; ok {
			return nil, fmt.Errorf("parameters: %q is not a parameter: the request sets it", name)
		}
	}
	return m, nil
}

// Rename moves a parameter to the name that an API knows it by. What has that name
// already stays.
func Rename(m map[string]json.RawMessage, from, to string) {
	v, ok := m[from]
	if !ok {
		return
	}
	delete(m, from)
	if _, taken := m[to]; !taken {
		m[to] = v
	}
}

// List makes a parameter a list: APIs differ in whether one stop text may stand alone.
func List(m map[string]json.RawMessage, name string) {
	if v := bytes.TrimSpace(m[name]); len(v) > 0 && v[0] == '"' {
		m[name] = json.RawMessage("[" + string(v) + "]")
	}
}

// Arguments returns the arguments of a call as a JSON object, which APIs demand of a
// call that they are sent back. Text that is none is wrapped, so that the model sees
// what it wrote.
func Arguments(args string) json.RawMessage {
	text := strings.TrimSpace(args)
	if text == "" {
		return json.RawMessage("{}")
	}
	if strings.HasPrefix(text, "{") && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	wrapped, err := json.Marshal(map[string]string{"INVALID_JSON": args})
	if err != nil { // a map of strings always has a JSON form
		return json.RawMessage("{}")
	}
	return wrapped
}

// CallID is the name of a call whose provider gave none: its number in the conversation.
func CallID(req agent.Request, i int) string {
	for _, m := range req.Messages {
		i += len(m.ToolCalls)
	}
	return fmt.Sprintf("call_%d", i+1)
}

// SameCalls reports whether what was kept of a message still says its calls: the ids and
// names that it holds, in order. A conversation may have been edited since.
func SameCalls(m agent.Message, kept []agent.ToolCall) bool {
	if len(m.ToolCalls) != len(kept) {
		return false
	}
	for i, c := range kept {
		if m.ToolCalls[i].ID != c.ID || m.ToolCalls[i].Name != c.Name {
			return false
		}
	}
	return true
}

// Kinds of [Media].
const (
	Text     = "text"
	Image    = "image"
	Audio    = "audio"
	Video    = "video"
	Document = "document"
)

// Media is a part of a message in the terms of the APIs.
type Media struct {
	Kind string
	Text string // of Text
	// Data is base64, MIME its type. URL stands for Data where the content is elsewhere.
	Data, MIME, URL string
	Name            string
}

// Bytes returns the content of Data.
func (m Media) Bytes() ([]byte, error) {
	b, err := base64.StdEncoding.DecodeString(m.Data)
	if err != nil {
		return nil, fmt.Errorf("data is not base64: %w", err)
	}
	return b, nil
}

// String names the part in an error.
func (m Media) String() string {
	if m.MIME != "" {
		return m.Kind + " of type " + m.MIME
	}
	return m.Kind
}

// Flatten returns parts in the terms of the APIs. Text documents become text.
func Flatten(parts []v1.Part) ([]Media, error) {
	out := make([]Media, 0, len(parts))
	for i, p := range parts {
		m, err := flatten(p)
		if err == nil && m.Kind == Document && strings.HasPrefix(m.MIME, "text/") && m.Data != "" {
			var b []byte
			if b, err = m.Bytes(); err == nil {
				m = Media{Kind: Text, Text: strings.ToValidUTF8(string(b), "\uFFFD"), Name: m.Name}
			}
		}
		if err == nil && m.Kind != Text && m.Data == "" && m.URL == "" {
			err = fmt.Errorf("%s has neither data nor uri", m)
		}
		if err == nil && m.Kind != Text && m.Data != "" {
			if m.MIME == "" {
				err = fmt.Errorf("%s has no mime_type", m)
			} else {
				_, err = m.Bytes()
			}
		}
		if err != nil {
			return nil, fmt.Errorf("parts[%d]: %w", i, err)
		}
		if m.Kind != Text || m.Text != "" {
			out = append(out, m)
		}
	}
	return out, nil
}

func flatten(p v1.Part) (Media, error) {
	m := Media{Kind: p.Type, Data: p.Data, MIME: media(p.MIMEType), URL: p.URI, Name: p.Name}
	if p.Media != nil && m.Data == "" {
		m.Data = p.Media.Data
		if m.MIME == "" {
			m.MIME = media(p.Media.MIMEType)
		}
		if m.URL == "" {
			m.URL = p.Media.URL
		}
	}
	m.Name = cmp.Or(m.Name, p.Title)
	switch p.Type {
	case Text:
		return Media{Kind: Text, Text: p.Text}, nil
	case Image, Audio, Video, Document:
		if m.Data == "" && p.Text != "" { // a document of plain text
			return Media{Kind: Text, Text: p.Text}, nil
		}
		return m, nil
	case "resource_link":
		return Media{Kind: Text, Text: strings.TrimSpace("resource " + m.Name + " " + p.URI)}, nil
	case "resource":
		if p.Resource == nil {
			return m, fmt.Errorf("a resource without its content")
		}
		if p.Resource.Blob == "" {
			return Media{Kind: Text, Text: p.Resource.Text}, nil
		}
		mt := media(p.Resource.MIMEType)
		kind, _, _ := strings.Cut(mt, "/")
		switch kind {
		case Image, Audio, Video:
		default:
			kind = Document
		}
		return Media{Kind: kind, Data: p.Resource.Blob, MIME: mt, Name: p.Resource.URI}, nil
	}
	return m, fmt.Errorf("a part of type %q cannot be sent to a model", p.Type)
}

// media is a media type without its parameters.
func media(s string) string {
	if mt, _, err := mime.ParseMediaType(s); err == nil {
		return mt
	}
	return strings.ToLower(strings.TrimSpace(s))
}
