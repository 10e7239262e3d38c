package mcp

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
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
// (RFC 9110, section 5.6.2), stands on a string, integer or boolean that is reached
// through properties alone, and is there once, whatever its case.
func headerProblem(schema json.RawMessage) string {
	if !strings.Contains(string(schema), paramHeader) {
		return ""
	}
	var s map[string]json.RawMessage
	if json.Unmarshal(schema, &s) == nil && s[paramHeader] != nil {
		return paramHeader + " of the whole schema: it is for properties"
	}
	return walkHeaders("", s, map[string]bool{}, 0)
}

func walkHeaders(path string, schema map[string]json.RawMessage, seen map[string]bool, depth int) string {
	if depth > maxHeaderDepth {
		return ""
	}
	for _, keyword := range slices.Sorted(maps.Keys(schema)) {
		if keyword != "properties" && marked(keyword, schema[keyword], depth) {
			return fmt.Sprintf("%s within %s is not on a property of the arguments", paramHeader, clip.Bytes(path+"/"+keyword, 100))
		}
	}
	var properties map[string]json.RawMessage
	_ = json.Unmarshal(schema["properties"], &properties) // what is no schema is reported as such
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		at := path + "/" + name
		var p map[string]json.RawMessage
		if json.Unmarshal(properties[name], &p) != nil {
			continue
		}
		if mark, ok := p[paramHeader]; ok {
			if msg := markProblem(mark, p["type"], seen); msg != "" {
				return fmt.Sprintf("%s of the property %s %s", paramHeader, clip.Bytes(at, 100), msg)
			}
		}
		if msg := walkHeaders(at, p, seen, depth+1); msg != "" {
			return msg
		}
	}
	return ""
}

// marked reports whether a schema within the value of a keyword is marked.
func marked(keyword string, value json.RawMessage, depth int) bool {
	if depth > maxHeaderDepth || !strings.Contains(string(value), paramHeader) {
		return false
	}
	var all []json.RawMessage
	switch keyword {
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies": // by name
		var named map[string]json.RawMessage
		_ = json.Unmarshal(value, &named)
		all = slices.Collect(maps.Values(named))
	case "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "items", "prefixItems", "additionalItems", "contains",
		"additionalProperties", "propertyNames", "unevaluatedItems", "unevaluatedProperties", "contentSchema":
		if json.Unmarshal(value, &all) != nil {
			all = []json.RawMessage{value}
		}
	}
	return slices.ContainsFunc(all, func(schema json.RawMessage) bool {
		var s map[string]json.RawMessage
		if json.Unmarshal(schema, &s) != nil {
			return false
		}
		if s[paramHeader] != nil {
			return true
		}
		for keyword, value := range s {
			if marked(keyword, value, depth+1) {
				return true
			}
		}
		return false
	})
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
		return "is for a string, an integer or a boolean only"
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

// ParamMark is a property whose value is sent as a header too.
type ParamMark struct {
	path   []string
	Header string
}

// Value is what the header says of arguments; false when it is not sent.
func (m ParamMark) Value(args json.RawMessage) (string, bool) { return headerValue(at(args, m.path)) }

// ParamMarks returns the marks of an input schema.
func ParamMarks(schema json.RawMessage) []ParamMark {
	if !strings.Contains(string(schema), paramHeader) || headerProblem(schema) != "" {
		return nil
	}
	return marks(nil, schema)
}

// DecodeHeader returns the text of a header (MCP specification 2026-07-28, basic/transports, encoding of values).
func DecodeHeader(value string) string {
	if text, ok := strings.CutPrefix(value, "=?base64?"); ok && strings.HasSuffix(text, "?=") {
		if raw, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(text, "?=")); err == nil {
			return string(raw)
		}
	}
	return value
}

// marksOf returns the marks of each tool of a list that has some.
func marksOf(tools []json.RawMessage) map[string][]ParamMark {
	all := map[string][]ParamMark{}
	for _, raw := range tools {
		var t struct {
			Name        string          `json:"name"`
			InputSchema json.RawMessage `json:"inputSchema"`
		}
		if strings.Contains(string(raw), paramHeader) && json.Unmarshal(raw, &t) == nil && headerProblem(t.InputSchema) == "" {
			all[t.Name] = marks(nil, t.InputSchema)
		}
	}
	return all
}

func marks(path []string, schema json.RawMessage) (all []ParamMark) {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil || len(path) > maxHeaderDepth {
		return nil
	}
	for name, p := range s.Properties {
		at := append(slices.Clone(path), name)
		var mark struct {
			Header string `json:"x-mcp-header"`
		}
		if json.Unmarshal(p, &mark) == nil && mark.Header != "" {
			all = append(all, ParamMark{at, mark.Header})
		}
		all = append(all, marks(at, p)...)
	}
	return all
}

// setParamHeaders sets the headers for the marked arguments of a call.
func (u *upstream) setParamHeaders(h http.Header, x *exchange) {
	u.mu.Lock()
	marked := u.known.headers[x.name]
	u.mu.Unlock()
	if len(marked) == 0 {
		return
	}
	for _, p := range x.params {
		args, ok := p.value.(json.RawMessage)
		if !ok || p.name != "arguments" {
			continue
		}
		for _, m := range marked {
			if value, ok := headerValue(at(args, m.path)); ok {
				h.Set("Mcp-Param-"+m.Header, value)
			}
		}
	}
}

// at returns the value at a path of an object; nil when there is none.
func at(object json.RawMessage, path []string) json.RawMessage {
	for _, name := range path {
		var members map[string]json.RawMessage
		if json.Unmarshal(object, &members) != nil {
			return nil
		}
		object = members[name]
	}
	return object
}

// headerValue is a string, a boolean or an integer that a double holds as a header; false
// when it is none.
func headerValue(raw json.RawMessage) (string, bool) {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return "", false
	}
	switch v := v.(type) {
	case string:
		return headerText(v), true
	case bool:
		return strconv.FormatBool(v), true
	case float64:
		const safe = 1<<53 - 1
		if v == math.Trunc(v) && math.Abs(v) <= safe {
			return strconv.FormatInt(int64(v), 10), true
		}
	}
	return "", false
}

// headerText is a text as the value of a header (MCP specification 2026-07-28,
// basic/transports, encoding of values).
func headerText(text string) string {
	const begin, end = "=?base64?", "?="
	plain := strings.Trim(text, " \t") == text && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) &&
		!(strings.HasPrefix(text, begin) && strings.HasSuffix(text, end))
	if plain {
		return text
	}
	return begin + base64.StdEncoding.EncodeToString([]byte(text)) + end
}
