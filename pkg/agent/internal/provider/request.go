package provider

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/agent"
)

// Encode returns the body of a request.
func (a *API) Encode(req agent.Request, stream bool) (Object, error) {
	if req.Model == "" {
		return nil, fmt.Errorf("no model is set: name one, for example %q", a.Example)
	}
	body := Object{}
	if stream {
		maps.Copy(body, a.Streamed)
	}
	var tools []any
	for _, t := range req.Tools {
		if !json.Valid(t.Parameters) || !bytes.HasPrefix(bytes.TrimSpace(t.Parameters), []byte("{")) {
			return nil, fmt.Errorf("tool %q: parameters must be a JSON Schema object", t.Name)
		}
		tool := Object{"name": t.Name, a.SchemaKey: t.Parameters}
		if t.Description != "" {
			tool["description"] = t.Description
		}
		tools = append(tools, tool)
	}
	if len(tools) > 0 && req.ToolChoice != "" && req.ToolChoice != v1.ToolChoiceAuto { // auto is the default of every API
		choice, ok := a.Choices[req.ToolChoice]
		if !ok {
			return nil, fmt.Errorf("tool_choice: expected auto, required or none, got %q", req.ToolChoice)
		}
		body[a.ChoiceKey] = choice
	}
	extra, err := Parameters(req.Parameters)
	if err != nil {
		return nil, err
	}
	for _, name := range a.Reserved {
		if _, ok := extra[name]; ok {
			return nil, fmt.Errorf("parameters: %q cannot be set: toolctl sets it", name)
		}
	}
	for _, names := range a.Renamed {
		rename(extra, names[0], names[1])
	}
	if err := a.Body(body, req, tools, extra); err != nil {
		return nil, err
	}
	maps.Copy(body, extra)
	return body, nil
}

// Parameters reads an object. It keeps the notation of values, such as the digits of numbers.
func Parameters(raw json.RawMessage) (Object, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, nil
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("parameters must be a JSON object: %w", err)
	}
	o := Object{}
	for name, value := range m {
		o[name] = value
	}
	return o, nil
}

// rename moves a parameter to the name that an API uses. An existing parameter with that name takes precedence.
func rename(m Object, from, to string) {
	v, ok := m[from]
	if !ok {
		return
	}
	delete(m, from)
	if _, taken := m[to]; !taken {
		m[to] = v
	}
}

// List wraps a single text in a list, because some APIs accept stop texts only as a list.
func List(m Object, name string) {
	if v, ok := m[name].(json.RawMessage); ok && bytes.HasPrefix(v, []byte(`"`)) {
		m[name] = []json.RawMessage{v}
	}
}

// Each calls add for each message of a conversation. Errors name the message.
func Each(messages []agent.Message, add func(agent.Message) error) error {
	for i, m := range messages {
		err := fmt.Errorf("expected the role user, assistant or tool, got %q", m.Role)
		if m.Role == agent.RoleUser || m.Role == agent.RoleAssistant || m.Role == agent.RoleTool {
			err = add(m)
		}
		if err != nil {
			return fmt.Errorf("messages[%d]: %w", i, err)
		}
	}
	return nil
}

// Contents returns a text, unless it is empty, and its parts, each in the form that content
// gives it.
func Contents(text string, parts []v1.Part, content func(Media) (Object, error)) ([]any, error) {
	var out []any
	add := func(m Media) error {
		if m.Kind == Text && m.Text == "" {
			return nil
		}
		one, err := content(m)
		out = append(out, one)
		return err
	}
	err := add(Media{Kind: Text, Text: text})
	for i, p := range parts {
		m, bad := flatten(p)
		if bad == nil {
			bad = m.check()
		}
		if bad != nil {
			return nil, fmt.Errorf("parts[%d]: %w", i, bad)
		}
		err = cmp.Or(err, add(m))
	}
	return out, err
}

// Arguments returns the arguments of a call as a JSON object, which the APIs require for calls in the conversation.
// Other text is wrapped in an object, so that the model sees the text that it wrote.
func Arguments(args string) json.RawMessage {
	text := strings.TrimSpace(args)
	if text == "" {
		return json.RawMessage("{}")
	}
	if strings.HasPrefix(text, "{") && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return jsontext.Of(map[string]string{"INVALID_JSON": args})
}

// MediaKind returns the kind of a media type: image, audio, video or document.
func MediaKind(mimeType string) string {
	switch kind, _, _ := strings.Cut(mimeType, "/"); kind {
	case Image, Audio, Video:
		return kind
	}
	return Document
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
	Text string // set for the kind text
	// Data is the content in base64, and MIME its type. URL replaces Data if the content is elsewhere.
	Data, MIME, URL string
	Name            string
}

// Remote reports whether the content is on the web.
func (m Media) Remote() bool {
	return m.Data == "" && (strings.HasPrefix(m.URL, "https://") || strings.HasPrefix(m.URL, "http://"))
}

// String names the part in errors.
func (m Media) String() string {
	if m.MIME != "" {
		return m.Kind + " of type " + m.MIME
	}
	return m.Kind
}

// check refuses a part without content, and turns a text document into text.
func (m *Media) check() error {
	if m.Kind == Text {
		return nil
	}
	b, err := base64.StdEncoding.DecodeString(m.Data)
	switch {
	case m.Data == "" && m.URL == "":
		return fmt.Errorf("%s has neither data nor uri", m)
	case m.Data == "":
		return nil
	case m.MIME == "":
		return fmt.Errorf("%s has no mime_type", m)
	case err != nil:
		return fmt.Errorf("data is not base64: %w", err)
	case m.Kind == Document && strings.HasPrefix(m.MIME, "text/"):
		*m = Media{Kind: Text, Text: strings.ToValidUTF8(string(b), "\uFFFD"), Name: m.Name}
	}
	return nil
}

// flatten converts a part to the terms of the APIs.
func flatten(p v1.Part) (Media, error) {
	m := Media{Kind: p.Type, Data: p.Data, MIME: media(p.MIMEType), URL: p.URI, Name: cmp.Or(p.Name, p.Title)}
	if p.Media != nil && m.Data == "" {
		m.Data, m.MIME, m.URL = p.Media.Data, cmp.Or(m.MIME, media(p.Media.MIMEType)), cmp.Or(m.URL, p.Media.URL)
	}
	switch p.Type {
	case Text:
		return Media{Kind: Text, Text: p.Text}, nil
	case Image, Audio, Video, Document:
		if m.Data == "" && p.Text != "" { // the document is plain text
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
		return Media{Kind: MediaKind(mt), Data: p.Resource.Blob, MIME: mt, Name: p.Resource.URI}, nil
	}
	return m, fmt.Errorf("a part of type %q cannot be sent to a model", p.Type)
}

// media returns a media type without its parameters.
func media(s string) string {
	if mt, _, err := mime.ParseMediaType(s); err == nil {
		return mt
	}
	return strings.ToLower(strings.TrimSpace(s))
}
