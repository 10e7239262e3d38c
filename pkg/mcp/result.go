package mcp

import (
	"bytes"
	"encoding/json"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
)

// toolResult reads a CallToolResult (MCP specification, server/tools). Its content
// is structuredContent when the server gives one; else, of one text part, the JSON
// that it holds; else the text of all text parts, a line between two; else null.
func toolResult(raw json.RawMessage) (res v1.Result, failed bool, ok bool) {
	if len(bytes.TrimSpace(raw)) == 0 || bytes.TrimSpace(raw)[0] != '{' {
		return v1.Result{}, false, false
	}
	if res, failed, ok = plainResult(raw); ok {
		return res, failed, true
	}
	return anyResult(raw)
}

// anyResult is toolResult for a result with blocks of every kind.
func anyResult(raw json.RawMessage) (res v1.Result, failed bool, ok bool) {
	var r struct {
		Content    []block         `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
		IsError    bool            `json:"isError"`
		Meta       json.RawMessage `json:"_meta"`
	}
	var ps []v1.Part
	if json.Unmarshal(raw, &r) == nil {
		ps, ok = knownParts(r.Content)
	}
	if !ok { // a block that is odd: each by itself
		var each struct {
			Content    []json.RawMessage `json:"content"`
			Structured json.RawMessage   `json:"structuredContent"`
			IsError    bool              `json:"isError"`
			Meta       json.RawMessage   `json:"_meta"`
		}
		if json.Unmarshal(raw, &each) != nil {
			return v1.Result{}, false, false
		}
		ps, r.Structured, r.IsError, r.Meta = parts(each.Content), each.Structured, each.IsError, each.Meta
	}
	return newResult(ps, r.Structured, r.Meta), r.IsError, true
}

func newResult(ps []v1.Part, structured, m json.RawMessage) v1.Result {
	res := v1.Result{Status: v1.StatusComplete, Parts: ps, Meta: meta(m)}
	if len(structured) > 0 && string(structured) != "null" {
		res.Content, res.Structured = structured, true
	} else {
		res.Content = textContent(res.Parts)
	}
	return res
}

// plainResult is toolResult for one whose blocks are plain texts, as most are and all that is
// large: encoding/json would read it three times. False leaves it to that.
func plainResult(raw json.RawMessage) (res v1.Result, failed bool, ok bool) {
	if !jsontext.Valid(raw) {
		return v1.Result{}, false, false
	}
	var content, structured, isError, more, kind []byte
	if !jsontext.Members(raw, func(name string) *[]byte {
		switch name {
		case "content":
			return &content
		case "structuredContent":
			return &structured
		case "isError":
			return &isError
		case "_meta":
			return &more
		case "resultType":
			return &kind
		}
		return nil
	}) || isError != nil && string(isError) != "true" && string(isError) != "false" {
		return v1.Result{}, false, false
	}
	ps := []v1.Part{}
	if !jsontext.Elements(content, func(element []byte) bool {
		var kind, text []byte
		ok := jsontext.Members(element, func(name string) *[]byte {
			switch name {
			case "type":
				return &kind
			case "text":
				return &text
			}
			return nil
		}) && string(kind) == `"text"` && len(text) > 0 && text[0] == '"'
		if ok {
			ps = append(ps, v1.Part{Type: v1.PartText, Text: jsontext.Unquote(text)})
		}
		return ok
	}) {
		return v1.Result{}, false, false
	}
	return newResult(ps, structured, more), string(isError) == "true", true
}

// metaServerInfo is a key of _meta that each server sets for itself, in every result.
const metaServerInfo = "io.modelcontextprotocol/serverInfo"

// meta returns what a _meta object holds for others; nil when that is nothing.
func meta(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	if !bytes.Contains(raw, []byte(metaServerInfo)) {
		return raw
	}
	var values map[string]json.RawMessage
	if json.Unmarshal(raw, &values) != nil {
		return nil
	}
	if delete(values, metaServerInfo); len(values) == 0 {
		return nil
	}
	rest, err := json.Marshal(values)
	if err != nil {
		return nil
	}
	return rest
}

// texts returns the text parts.
func texts(ps []v1.Part) []string {
	var all []string
	for _, p := range ps {
		if p.Type == v1.PartText {
			all = append(all, p.Text)
		}
	}
	return all
}

func textContent(ps []v1.Part) json.RawMessage {
	all := texts(ps)
	if len(all) == 0 {
		return json.RawMessage("null")
	}
	if len(all) == 1 {
		if raw := []byte(all[0]); jsontext.Valid(raw) {
			return bytes.TrimSpace(raw)
		}
	}
	return jsontext.Quote(strings.Join(all, "\n"))
}

// parts reads content blocks (MCP specification, ContentBlock).
func parts(blocks []json.RawMessage) []v1.Part {
	ps := make([]v1.Part, 0, len(blocks))
	for _, raw := range blocks {
		ps = append(ps, part(raw))
	}
	return ps
}

// part reads one content block. A block of a kind that is not known, or that cannot
// be read, is kept as a text part that holds it as it came.
func part(raw json.RawMessage) v1.Part {
	var b block
	if json.Unmarshal(raw, &b) == nil {
		if p, ok := b.part(); ok {
			return p
		}
	}
	return v1.Part{Type: v1.PartText, Text: string(raw)}
}

// knownParts returns the parts of blocks of which each is of a known kind.
func knownParts(blocks []block) ([]v1.Part, bool) {
	ps := make([]v1.Part, len(blocks))
	for i := range blocks {
		var ok bool
		if ps[i], ok = blocks[i].part(); !ok {
			return nil, false
		}
	}
	return ps, true
}

// block is a content block as it is on the wire.
type block struct {
	Type        string          `json:"type"`
	Text        string          `json:"text"`
	Data        string          `json:"data"`
	MIMEType    string          `json:"mimeType"`
	URI         string          `json:"uri"`
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Size        *int64          `json:"size"`
	Resource    *contents       `json:"resource"`
	Icons       json.RawMessage `json:"icons"`
	Annotations json.RawMessage `json:"annotations"`
	Meta        json.RawMessage `json:"_meta"`
}

func (b *block) part() (v1.Part, bool) {
	p := v1.Part{Type: b.Type, Annotations: b.Annotations, Meta: b.Meta}
	switch b.Type {
	case v1.PartText:
		p.Text = b.Text
	case v1.PartImage, v1.PartAudio:
		p.Data, p.MIMEType = b.Data, b.MIMEType
	case v1.PartResource:
		if b.Resource == nil {
			return p, false
		}
		p.Resource = b.Resource.part()
	case v1.PartResourceLink:
		p.URI, p.Name, p.Title, p.Description, p.MIMEType, p.Size, p.Icons = b.URI, b.Name, b.Title, b.Description, b.MIMEType, b.Size, b.Icons
	default:
		return p, false
	}
	return p, true
}

// contents are the contents of a resource as they are on the wire.
type contents struct {
	URI      string          `json:"uri"`
	MIMEType string          `json:"mimeType"`
	Text     string          `json:"text"`
	Blob     string          `json:"blob"`
	Meta     json.RawMessage `json:"_meta"`
}

func (c *contents) part() *v1.ResourceContents {
	return &v1.ResourceContents{URI: c.URI, MIMEType: c.MIMEType, Text: c.Text, Blob: c.Blob, Meta: meta(c.Meta)}
}
