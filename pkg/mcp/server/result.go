package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// result is a CallToolResult (MCP specification, server/tools). The SDK's type would decode base64 only to
// encode it again, and cannot be marked as complete from this package.
type result struct {
	base
	Content    []wire.Block
	Structured json.RawMessage
	IsError    bool
	// uncounted means that the call was refused because the store cannot be reached.
	uncounted bool
}

// newResult returns the client's result for the outcome of a call. structuredContent is the content if the
// tool declares an output schema, or if the content differs from the parts. Older clients accept only
// objects.
func newResult(t *v1.Tool, res v1.Result, err error, version string) *result {
	r := &result{Content: []wire.Block{}}
	modern := wire.IsModern(version)
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
		r.Content = append(r.Content, wire.BlockOf(p))
	}
	content := bytes.TrimSpace(res.Content)
	if string(content) == "null" {
		content = nil
		if err == nil && len(res.Parts) == 0 && t.Mode() != v1.ModeMCP { // results of MCP servers are relayed unchanged
			r.Content = append(r.Content, wire.TextBlock(res.NoContent()))
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
		r.Content = append([]wire.Block{wire.TextBlock(explain(err))}, r.Content...)
		if len(content) > 0 {
			r.Content = append(r.Content, wire.TextBlock(plain(content)))
		}
	case res.Structured && len(res.Parts) > 0 && len(r.Structured) > 0: // the parts already are the server's text form
	case !hasText(res.Parts) && len(content) > 0:
		r.Content = append(r.Content, wire.TextBlock(plain(content)))
	}
	return r
}

// explain describes an error to a model that may correct its call. It does not reveal file positions on the
// server to clients.
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

// plain returns content as text: a JSON string without its quotes, and other values as JSON.
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

// textOf returns the JSON in a single text part, which is the content of a result if an MCP server sent no
// structuredContent.
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

// WriteJSON appends the result. It avoids encoding/json, which would read the texts of large results twice.
func (r *result) WriteJSON(b *bytes.Buffer) error {
	b.Grow(int(r.size()) + 512)
	b.WriteString(`{"content":[`)
	for i := range r.Content {
		if i > 0 {
			b.WriteByte(',')
		}
		c := &r.Content[i]
		if c.Type != v1.PartText || c.Annotations != nil || c.Meta != nil {
			if err := wire.Write(b, c); err != nil {
				return err
			}
			continue
		}
		b.WriteString(`{"type":"text","text":`)
		jsontext.AppendString(b, *c.Text)
		b.WriteByte('}')
	}
	b.WriteByte(']')
	if len(r.Structured) > 0 {
		if !jsontext.Valid(r.Structured) {
			return errors.New("structuredContent is not valid JSON")
		}
		b.WriteString(`,"structuredContent":`)
		b.Write(r.Structured)
	}
	if r.IsError {
		b.WriteString(`,"isError":true`)
	}
	if len(r.Meta) > 0 {
		b.WriteString(`,"_meta":`)
		if err := wire.Write(b, r.Meta); err != nil {
			return err
		}
	}
	if r.Type != "" {
		b.WriteString(`,"resultType":"` + r.Type + `"`)
	}
	b.WriteByte('}')
	return nil
}
