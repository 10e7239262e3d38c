package mcp

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// toolResult reads a CallToolResult (MCP specification, server/tools). The content is structuredContent if
// the server sends it. Otherwise it is the JSON in a single text part, or the text of all text parts with
// line breaks between them, or null.
func toolResult(answer *wire.Message) (res v1.Result, failed bool, ok bool) {
	r := answer.Result
	isError, content := string(r.Get("isError")), orNull(r.Get("content"))
	ps := []v1.Part{}
	ok = r != nil && slices.Contains([]string{"", "null", "false", "true"}, isError) &&
		(string(content) == "null" || jsontext.Elements(content, func(block []byte) bool {
			ps = append(ps, part(block))
			return true
		}))
	if !ok {
		return v1.Result{}, false, false
	}
	return newResult(ps, r.Get("structuredContent"), r.Get("_meta")), isError == "true", true
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

// meta returns the members of a _meta object that may be passed on; nil if there are no such members.
func meta(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	if !bytes.Contains(raw, []byte(wire.MetaServer)) {
		return raw
	}
	var values map[string]json.RawMessage
	if json.Unmarshal(raw, &values) != nil {
		return nil
	}
	if delete(values, wire.MetaServer); len(values) == 0 {
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

// part reads one content block. A block that is unknown or unreadable becomes a text part with its JSON.
func part(raw json.RawMessage) v1.Part {
	if p, ok := textPart(raw); ok {
		return p
	}
	var b wire.Block
	if json.Unmarshal(raw, &b) == nil {
		if p, ok := b.Part(); ok {
			return p
		}
	}
	return v1.Part{Type: v1.PartText, Text: string(raw)}
}

// textPart reads a block that is plain text. Most blocks are plain text, and encoding/json takes three
// times as long, which matters for results of several megabytes.
func textPart(raw json.RawMessage) (v1.Part, bool) {
	var kind, text []byte
	ok := jsontext.Members(raw, func(name string) *[]byte {
		switch name {
		case "type":
			return &kind
		case "text":
			return &text
		}
		return nil
	})
	if !ok || string(kind) != `"text"` || len(text) == 0 || text[0] != '"' {
		return v1.Part{}, false
	}
	return v1.Part{Type: v1.PartText, Text: jsontext.Unquote(text)}, true
}
