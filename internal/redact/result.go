package redact

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Result masks the whole outcome of a call: the content, all parts and metadata, and the error. The error keeps its
// type. Result does not modify the data that res points to.
func (m *Masker) Result(res *v1.Result, err error) error {
	if m.Empty() {
		return err
	}
	res.Content, res.Meta = m.JSON(res.Content), m.JSON(res.Meta)
	if len(res.Parts) > 0 {
		parts := make([]v1.Part, len(res.Parts))
		for i := range parts {
			parts[i] = m.Part(res.Parts[i])
		}
		res.Parts = parts
	}
	if len(res.Effects) > 0 {
		effects := make([]v1.Effect, len(res.Effects))
		for i, e := range res.Effects {
			e.URL = m.Text(e.URL)
			effects[i] = e
		}
		res.Effects = effects
	}
	return m.Error(err)
}

// Part masks a part of a result, including binary data that is text.
func (m *Masker) Part(p v1.Part) v1.Part {
	if m.Empty() {
		return p
	}
	p.Text, p.Data = m.Text(p.Text), m.binary(p.Data)
	p.URI, p.Name, p.Title, p.Description = m.Text(p.URI), m.Text(p.Name), m.Text(p.Title), m.Text(p.Description)
	p.MIMEType, p.Icons, p.Annotations, p.Meta = m.Text(p.MIMEType), m.JSON(p.Icons), m.JSON(p.Annotations), m.JSON(p.Meta)
	if p.Media != nil {
		c := *p.Media
		c.FilePath, c.Data, c.URL, c.MIMEType = m.Text(c.FilePath), m.binary(c.Data), m.Text(c.URL), m.Text(c.MIMEType)
		c.Caption = m.Text(c.Caption)
		p.Media = &c
	}
	if p.Resource != nil {
		r := m.Resource(*p.Resource)
		p.Resource = &r
	}
	return p
}

// Resource masks the contents of a resource.
func (m *Masker) Resource(r v1.ResourceContents) v1.ResourceContents {
	if m.Empty() {
		return r
	}
	r.URI, r.MIMEType, r.Text, r.Blob, r.Meta = m.Text(r.URI), m.Text(r.MIMEType), m.Text(r.Text), m.binary(r.Blob), m.JSON(r.Meta)
	return r
}

// binary masks base64 data that is text.
func (m *Masker) binary(data string) string {
	plain, err := base64.StdEncoding.DecodeString(data)
	if err != nil || len(plain) == 0 || !isText(plain) {
		return m.Values(data)
	}
	if masked := m.text(string(plain), 1); masked != string(plain) {
		return base64.StdEncoding.EncodeToString([]byte(masked))
	}
	return data
}

// Error masks the texts of an error. The error keeps its type, and errors.Is still reports cancellation and timeouts.
// A cause that contains masked text is removed.
func (m *Masker) Error(err error) error {
	if err == nil || m.Empty() {
		return err
	}
	var (
		invalid *v1.ValidationError
		exec    *v1.ExecutionError
		mcp     *v1.MCPError
		refused *v1.PolicyError
	)
	out := err
	switch {
	case errors.As(err, &invalid):
		return v1.NewValidationError(invalid.Type, invalid.Tool, m.Violations(invalid.Violations))
	case errors.As(err, &exec):
		e := *exec
		e.Message = m.Text(e.Message)
		if e.Cause = m.Error(e.Cause); e.Cause != nil && m.Text(e.Cause.Error()) != e.Cause.Error() {
			e.Cause = nil
		}
		out = same(err, exec, &e)
	case errors.As(err, &mcp):
		e := *mcp
		e.Message, e.Detail, e.Data = m.Text(e.Message), m.Text(e.Detail), m.data(e.Data)
		out = same(err, mcp, &e)
	case errors.As(err, &refused):
		e := *refused
		e.Message = m.Text(e.Message)
		out = same(err, refused, &e)
	}
	if text := out.Error(); m.Text(text) != text {
		return &masked{text: m.Text(text), err: err}
	}
	return out
}

// same returns err unchanged if masking changed nothing.
func same[E error](err error, old, masked E) error {
	if old.Error() == masked.Error() && fmt.Sprintf("%+v", old) == fmt.Sprintf("%+v", masked) {
		return err
	}
	return masked
}

// masked is an error of any other type, with masked text.
type masked struct {
	text string
	err  error
}

func (e *masked) Error() string { return e.text }

// Is makes errors.Is work for the original error, without exposing its text.
func (e *masked) Is(target error) bool { return errors.Is(e.err, target) }

// ResultErrorType returns the type of the original error.
func (e *masked) ResultErrorType() string { return v1.NewResultError(e.err).Type }

func (m *Masker) data(raw json.RawMessage) json.RawMessage {
	if len(raw) > 0 && !json.Valid(raw) {
		return json.RawMessage(m.Text(string(raw)))
	}
	return m.JSON(raw)
}

// Violations masks the received values of violations that a rule covers, and the values of the masker in all texts.
func (m *Masker) Violations(in []v1.Violation) []v1.Violation {
	if m.Empty() {
		return in
	}
	out := make([]v1.Violation, len(in))
	for i, v := range in {
		if at, ok := m.covered(v.Path); ok {
			v.Path, v.Got = at, Mask
			v.Message = fmt.Sprintf("expected %s, got %s", m.Values(v.Expected), Mask)
		}
		v.Got, v.Message = m.quotedValues(v.Got), m.quotedValues(v.Message)
		out[i] = v
	}
	return out
}

// Message masks a text about masked values, which may contain truncated parts of them.
func (m *Masker) Message(s string) string {
	if m.Empty() {
		return s
	}
	return m.quotedValues(m.Text(s))
}

// quotedValues masks the values in a message, which may contain long ones truncated.
func (m *Masker) quotedValues(s string) string {
	s = m.Values(s)
	for _, v := range m.values {
		const shown = 12
		if len(v) > shown && strings.Contains(s, v[:shown]) {
			return Mask
		}
	}
	return s
}

// covered returns the masked place that contains the value at a pointer.
func (m *Masker) covered(pointer string) (string, bool) {
	at, path := m.rules.pointers, ""
	for _, token := range v1.Tokens(pointer) {
		path = v1.Pointer(path, token)
		var hit bool
		if at, hit = m.rules.names.step(at, token, true); hit {
			return path, true
		}
	}
	return "", false
}
