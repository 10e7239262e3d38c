package server

import (
	"bytes"
	"errors"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
)

// writeResult writes a result as JSON. Results are large: what MarshalJSON returns is
// read once more by encoding/json, and each text in it twice, which was most of what a
// call with a large result cost here.
func writeResult(b *bytes.Buffer, r *result) error {
	b.Grow(int(r.size()) + 512)
	put := func(v any) error { return jsontext.Write(b, v) }
	b.WriteString(`{"content":[`)
	for i := range r.Content {
		if i > 0 {
			b.WriteByte(',')
		}
		c := &r.Content[i]
		if c.Type != v1.PartText || c.Icons != nil || c.Annotations != nil || c.Meta != nil {
			if err := put(c); err != nil {
				return err
			}
			continue
		}
		b.WriteString(`{"type":"text","text":`)
		jsontext.AppendString(b, c.Text)
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
		if err := put(r.Meta); err != nil {
			return err
		}
	}
	if r.Type != "" {
		b.WriteString(`,"resultType":`)
		if err := put(r.Type); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}
