package wire

import (
	"cmp"
	"encoding/json"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
)

// Block is a content block (MCP specification, ContentBlock). A pointer is set if the type of the block
// requires the member, which is then written even if it is empty.
type Block struct {
	Type        string          `json:"type"`
	Text        *string         `json:"text,omitempty"`
	Data        *string         `json:"data,omitempty"`
	URI         *string         `json:"uri,omitempty"`
	Name        *string         `json:"name,omitempty"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	MIMEType    *string         `json:"mimeType,omitempty"`
	Size        *int64          `json:"size,omitempty"`
	Resource    *Contents       `json:"resource,omitempty"`
	Icons       json.RawMessage `json:"icons,omitempty"`
	Annotations json.RawMessage `json:"annotations,omitempty"`
	Meta        json.RawMessage `json:"_meta,omitempty"`
}

// Contents are the contents of a resource. Either Text or Blob is set.
type Contents struct {
	URI      string          `json:"uri"`
	MIMEType string          `json:"mimeType,omitempty"`
	Text     *string         `json:"text,omitempty"`
	Blob     string          `json:"blob,omitempty"`
	Meta     json.RawMessage `json:"_meta,omitempty"`
}

// TextBlock returns a block with a text.
func TextBlock(text string) Block { return Block{Type: v1.PartText, Text: &text} }

// BlockOf returns the block of a part. MCP has no blocks for videos and documents: with data they become embedded
// resources, with a URI they become links. Annotations, icons and _meta that are not JSON are left out.
func BlockOf(p v1.Part) Block {
	b := Block{Type: p.Type, Annotations: valid(p.Annotations), Meta: valid(p.Meta)}
	media := p.Type == v1.PartImage || p.Type == v1.PartAudio
	file := p.Type == v1.PartVideo || p.Type == v1.PartDocument
	switch {
	case p.Type == v1.PartResourceLink, (media || file) && p.Data == "" && p.URI != "":
		b.Type, b.Title, b.Description, b.Size, b.Icons = v1.PartResourceLink, p.Title, p.Description, p.Size, valid(p.Icons)
		name := p.Name
		if p.Type != v1.PartResourceLink {
			name = cmp.Or(name, p.Type)
		}
		b.URI, b.Name = &p.URI, &name
		if p.MIMEType != "" {
			b.MIMEType = &p.MIMEType
		}
	case media:
		b.Data, b.MIMEType = &p.Data, &p.MIMEType
	case file:
		b.Type, b.Resource = v1.PartResource, &Contents{URI: cmp.Or(p.URI, "toolctl:"+p.Type), MIMEType: p.MIMEType, Blob: p.Data}
	case p.Type == v1.PartResource && p.Resource != nil:
		b.Resource = &Contents{URI: p.Resource.URI, MIMEType: p.Resource.MIMEType, Blob: p.Resource.Blob, Meta: valid(p.Resource.Meta)}
		if p.Resource.Blob == "" {
			b.Resource.Text = &p.Resource.Text
		}
	default:
		b.Type, b.Text = v1.PartText, &p.Text
	}
	return b
}

// Part returns the part of a block. It returns false if the type of the block is unknown.
func (b *Block) Part() (v1.Part, bool) {
	p := v1.Part{Type: b.Type, Annotations: b.Annotations, Meta: b.Meta}
	switch b.Type {
	case v1.PartText:
		p.Text = value(b.Text)
	case v1.PartImage, v1.PartAudio:
		p.Data, p.MIMEType = value(b.Data), value(b.MIMEType)
	case v1.PartResource:
		if b.Resource == nil {
			return p, false
		}
		p.Resource = b.Resource.Part()
	case v1.PartResourceLink:
		p.URI, p.Name, p.Title, p.Description, p.MIMEType, p.Size, p.Icons = value(b.URI), value(b.Name), b.Title, b.Description, value(b.MIMEType), b.Size, b.Icons
	default:
		return p, false
	}
	return p, true
}

// Part returns the contents as those of a part.
func (c *Contents) Part() *v1.ResourceContents {
	return &v1.ResourceContents{URI: c.URI, MIMEType: c.MIMEType, Text: value(c.Text), Blob: c.Blob, Meta: c.Meta}
}

// Len returns the approximate number of bytes of the block, before JSON escapes.
func (b *Block) Len() int64 {
	n := len(value(b.Text)) + len(value(b.Data)) + len(value(b.URI)) + len(value(b.Name)) + len(b.Title) + len(b.Description) + len(b.Icons) + len(b.Annotations) + len(b.Meta)
	if b.Resource != nil {
		n += int(b.Resource.Len())
	}
	return int64(n)
}

// Len returns the approximate number of bytes of the contents, before JSON escapes.
func (c *Contents) Len() int64 {
	return int64(len(c.URI) + len(c.Blob) + len(value(c.Text)) + len(c.Meta))
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// valid drops a value that is not JSON, because it would make the whole result invalid.
func valid(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || !jsontext.Valid(raw) {
		return nil
	}
	return raw
}
