package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"toolctl.dev/toolctl/internal/clip"
)

// paramHeader marks a property of an input schema whose value is sent as an HTTP
// header too (MCP specification 2026-07-28, basic/transports, custom headers).
const paramHeader = "x-mcp-header"

// maxHeaderDepth bounds the depth to which a schema is looked into for marks.
const maxHeaderDepth = 64

// headerProblem says which mark of an input schema breaks the rules, "" when none
// does: a client of streamable HTTP must not call such a tool. A mark is a token
// (RFC 9110, section 5.6.2), stands on a string, integer or boolean, and is there
// once, whatever its case.
func headerProblem(schema json.RawMessage) string {
	if !strings.Contains(string(schema), paramHeader) {
		return ""
	}
	return walkHeaders("", schema, map[string]bool{}, 0)
}

func walkHeaders(path string, schema json.RawMessage, seen map[string]bool, depth int) string {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil || depth > maxHeaderDepth {
		return "" // what is no schema is reported as such
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		at := path + "/" + name
		var p map[string]json.RawMessage
		if json.Unmarshal(s.Properties[name], &p) != nil {
			continue
		}
		if mark, ok := p[paramHeader]; ok {
			if msg := markProblem(mark, p["type"], seen); msg != "" {
				return fmt.Sprintf("%s of the property %s %s", paramHeader, clip.Bytes(at, 100), msg)
			}
		}
		if msg := walkHeaders(at, s.Properties[name], seen, depth+1); msg != "" {
			return msg
		}
	}
	return ""
}

func markProblem(mark, typ json.RawMessage, seen map[string]bool) string {
	var name, kind string
	if json.Unmarshal(mark, &name) != nil || name == "" {
		return "must be a text that is not empty"
	}
	if strings.ContainsFunc(name, func(r rune) bool { return !isTokenChar(r) }) {
		return fmt.Sprintf("is %q, which cannot be part of a header's name", clip.Bytes(name, 100))
	}
	if json.Unmarshal(typ, &kind) != nil || kind != "string" && kind != "integer" && kind != "boolean" {
		return "goes with a string, an integer or a boolean only"
	}
	lower := strings.ToLower(name)
	if seen[lower] {
		return fmt.Sprintf("is %q, as that of another property", name)
	}
	seen[lower] = true
	return ""
}

// isTokenChar reports whether a character may be part of a token (RFC 9110, section 5.6.2).
func isTokenChar(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}
