package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
)

// result is a CallToolResult (MCP specification, server/tools). It is not the SDK's,
// which reads base64 only to write it again and cannot be marked as complete from here.
type result struct {
	base
	Content    []block         `json:"content"`
	Structured json.RawMessage `json:"structuredContent,omitempty"`
	IsError    bool            `json:"isError,omitempty"`
	// uncounted says that the call was refused because the store cannot be reached.
	uncounted bool
}

// newResult makes what a client gets of the outcome of a call. structuredContent is
// the content when the tool declares an output schema, or when the content says what
// the parts do not; older clients take objects only.
func newResult(t *v1.Tool, res v1.Result, err error, version string) *result {
	r := &result{Content: []block{}}
	modern := isModern(version)
	if res.Status == v1.StatusPending && err == nil {
		r.pending(res.Pending)
		r.judged(res)
		return r
	}
	r.IsError = err != nil || res.Status == v1.StatusFailed
	r.uncounted = errors.Is(err, v1.ErrStoreUnavailable)
	r.Meta = metaOf(res.Meta)
	r.judged(res)
	for _, p := range res.Parts {
		r.Content = append(r.Content, newBlock(p))
	}
	content := bytes.TrimSpace(res.Content)
	if string(content) == "null" {
		content = nil
		if err == nil && len(res.Parts) == 0 && t.Mode() != v1.ModeMCP { // what a server says is relayed as it is
			r.Content = append(r.Content, textBlock(res.NoContent()))
			if len(t.Spec.OutputSchema) > 0 && !r.IsError && modern {
				r.Structured = json.RawMessage("null")
			}
		}
	}
	said := len(res.Parts) > 0 && (len(content) == 0 || string(content) == textOf(res.Parts))
	declared, object := len(t.Spec.OutputSchema) > 0 && !r.IsError || res.Structured, len(content) > 0 && content[0] == '{'
	if len(content) > 0 && declared && modern || object && (declared || !said) {
		r.Structured = content
	}
	switch {
	case err != nil && !hasText(res.Parts):
		r.Content = append([]block{textBlock(explain(err))}, r.Content...)
		if len(content) > 0 {
			r.Content = append(r.Content, textBlock(plain(content)))
		}
	case res.Structured && len(res.Parts) > 0 && len(r.Structured) > 0: // as the server gave it
	case !hasText(res.Parts) && len(content) > 0:
		r.Content = append(r.Content, textBlock(plain(content)))
	}
	return r
}

// explain says what went wrong to a model that may fix its call. Places in the
// server's files are not for clients.
func explain(err error) string {
	var invalid *v1.ValidationError
	var refused *v1.PolicyError
	switch {
	case errors.As(err, &invalid) && len(invalid.Violations) > 0:
		head := map[string]string{v1.ArgsInvalid: "invalid arguments", v1.ResultInvalid: "invalid result", v1.ManifestInvalid: "the tool is not ready"}[invalid.Type]
		var b strings.Builder
		fmt.Fprintf(&b, "tool %q: %s", invalid.Tool, head)
		for _, f := range invalid.Violations {
			f.Source = v1.Source{}
			b.WriteString("\n- " + f.String())
		}
		return b.String()
	case errors.As(err, &refused):
		bare := *refused
		bare.Source = v1.Source{}
		text := bare.Error()
		if refused.Limit > 0 || refused.Used > 0 {
			text += fmt.Sprintf(" (limit %d, used %d)", refused.Limit, refused.Used)
		}
		return text
	}
	return err.Error()
}

// plain is content as text: a JSON string without its quotes, all else as JSON.
func plain(content json.RawMessage) string {
	var text string
	if content[0] == '"' && json.Unmarshal(content, &text) == nil {
		return text
	}
	return string(content)
}

func hasText(parts []v1.Part) bool {
	for _, p := range parts {
		if p.Type == v1.PartText {
			return true
		}
	}
	return false
}

// textOf is the JSON that a single text part holds, which is what a result's content
// is when an MCP server gave no structuredContent.
func textOf(parts []v1.Part) string {
	only := -1
	for i, p := range parts {
		if p.Type != v1.PartText {
			continue
		}
		if only >= 0 {
			return ""
		}
		only = i
	}
	if only < 0 {
		return ""
	}
	return strings.TrimSpace(parts[only].Text)
}

// block is a content block (MCP specification, ContentBlock).
type block struct {
	Type        string
	Text        string
	Data        string
	MIMEType    string
	URI         string
	Name        string
	Title       string
	Description string
	Size        *int64
	Resource    *contents
	Icons       json.RawMessage
	Annotations json.RawMessage
	Meta        json.RawMessage
}

// contents are the contents of an embedded resource.
type contents struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType,omitempty"`
	Text     *string `json:"text,omitempty"`
	Blob     string  `json:"blob,omitempty"`

	Meta json.RawMessage `json:"_meta,omitempty"`
}

// MarshalJSON writes the fields that the block's type has, required ones even when empty.
func (b block) MarshalJSON() ([]byte, error) {
	switch b.Type {
	case v1.PartImage, v1.PartAudio:
		return json.Marshal(struct {
			Type        string          `json:"type"`
			Data        string          `json:"data"`
			MIMEType    string          `json:"mimeType"`
			Annotations json.RawMessage `json:"annotations,omitempty"`
			Meta        json.RawMessage `json:"_meta,omitempty"`
		}{b.Type, b.Data, b.MIMEType, b.Annotations, b.Meta})
	case v1.PartResource:
		return json.Marshal(struct {
			Type        string          `json:"type"`
			Resource    *contents       `json:"resource"`
			Annotations json.RawMessage `json:"annotations,omitempty"`
			Meta        json.RawMessage `json:"_meta,omitempty"`
		}{b.Type, b.Resource, b.Annotations, b.Meta})
	case v1.PartResourceLink:
		return json.Marshal(struct {
			Type        string          `json:"type"`
			URI         string          `json:"uri"`
			Name        string          `json:"name"`
			Title       string          `json:"title,omitempty"`
			Description string          `json:"description,omitempty"`
			MIMEType    string          `json:"mimeType,omitempty"`
			Size        *int64          `json:"size,omitempty"`
			Icons       json.RawMessage `json:"icons,omitempty"`
			Annotations json.RawMessage `json:"annotations,omitempty"`
			Meta        json.RawMessage `json:"_meta,omitempty"`
		}{b.Type, b.URI, b.Name, b.Title, b.Description, b.MIMEType, b.Size, b.Icons, b.Annotations, b.Meta})
	}
	return json.Marshal(struct {
		Type        string          `json:"type"`
		Text        string          `json:"text"`
		Annotations json.RawMessage `json:"annotations,omitempty"`
		Meta        json.RawMessage `json:"_meta,omitempty"`
	}{v1.PartText, b.Text, b.Annotations, b.Meta})
}

func textBlock(text string) block { return block{Type: v1.PartText, Text: text} }

// newBlock makes a content block of a part. MCP has no blocks for videos and
// documents: with data they are embedded resources, with an address links.
func newBlock(p v1.Part) block {
	b := block{
		Type: p.Type, Text: p.Text, Data: p.Data, MIMEType: p.MIMEType, URI: p.URI, Name: p.Name, Title: p.Title,
		Description: p.Description, Size: p.Size, Icons: valid(p.Icons), Annotations: valid(p.Annotations), Meta: valid(p.Meta),
	}
	switch {
	case p.Type == v1.PartResource && p.Resource != nil:
		b.Resource = &contents{URI: p.Resource.URI, MIMEType: p.Resource.MIMEType, Blob: p.Resource.Blob, Meta: valid(p.Resource.Meta)}
		if p.Resource.Blob == "" {
			b.Resource.Text = &p.Resource.Text
		}
	case (p.Type == v1.PartImage || p.Type == v1.PartAudio || p.Type == v1.PartVideo || p.Type == v1.PartDocument) && p.Data == "" && p.URI != "":
		b.Type = v1.PartResourceLink
		b.Name = cmp.Or(p.Name, p.Type)
	case p.Type == v1.PartVideo || p.Type == v1.PartDocument:
		b.Type = v1.PartResource
		b.Resource = &contents{URI: cmp.Or(p.URI, "toolctl:"+p.Type), MIMEType: p.MIMEType, Blob: p.Data}
	}
	return b
}

// valid drops what is not valid JSON, so that it cannot spoil the whole result.
func valid(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || !jsontext.Valid(raw) {
		return nil
	}
	return raw
}
