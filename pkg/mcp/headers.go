package mcp

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/schema"
)

// paramHeader marks a property of an input schema whose value is also sent as an HTTP header (MCP
// specification 2026-07-28, basic/transports, custom headers).
const paramHeader = "x-mcp-header"

// maxHeaderDepth limits the depth of the search for marks in a schema.
const maxHeaderDepth = 64

// headerProblem returns the rule that a mark of an input schema breaks, or "". A client of streamable HTTP
// must not call such a tool. A mark is a token (RFC 9110, section 5.6.2), belongs to a string, integer or
// boolean property that is reached through properties alone, and is unique regardless of case.
func headerProblem(raw json.RawMessage) string {
	_, problem := readMarks(raw)
	return problem
}

// readMarks returns the marks of an input schema, or a problem with them.
func readMarks(raw json.RawMessage) (all []ParamMark, problem string) {
	var root map[string]any
	if !strings.Contains(string(raw), paramHeader) || json.Unmarshal(raw, &root) != nil {
		return nil, ""
	}
	if _, ok := root[paramHeader]; ok {
		return nil, paramHeader + " of the whole schema: it is for properties"
	}
	problem = walkMarks(nil, root, &all)
	return all, problem
}

// walkMarks collects the marks of the properties of a schema. path is the place of the schema in the
// arguments.
func walkMarks(path []string, node any, all *[]ParamMark) (problem string) {
	if len(path) > maxHeaderDepth {
		return ""
	}
	for _, sub := range schema.Subschemas(node, "", 0) {
		if sub.Role != schema.ByName {
			if marked(sub.Schema, len(path)) {
				return fmt.Sprintf("%s within %s is not on a property of the arguments", paramHeader, clip.Bytes(argumentPath(path)+"/"+v1.Tokens(sub.Pointer)[0], 100))
			}
			continue
		}
		at := append(slices.Clone(path), sub.Token)
		p, _ := sub.Schema.(map[string]any)
		if mark, ok := p[paramHeader]; ok {
			if msg := markProblem(mark, p["type"], *all); msg != "" {
				return fmt.Sprintf("%s of the property %s %s", paramHeader, clip.Bytes(argumentPath(at), 100), msg)
			}
			name, _ := mark.(string)
			*all = append(*all, ParamMark{at, name})
		}
		if problem := walkMarks(at, p, all); problem != "" {
			return problem
		}
	}
	return ""
}

func argumentPath(path []string) string { return strings.Join(append([]string{""}, path...), "/") }

// marked reports whether a schema or one of its subschemas has a mark.
func marked(node any, depth int) bool {
	object, _ := node.(map[string]any)
	if _, ok := object[paramHeader]; ok || depth > maxHeaderDepth {
		return ok
	}
	return slices.ContainsFunc(schema.Subschemas(node, "", 0), func(s schema.Subschema) bool { return marked(s.Schema, depth+1) })
}

func markProblem(mark, kind any, others []ParamMark) string {
	name, _ := mark.(string)
	switch {
	case name == "":
		return "must be a non-empty string"
	case strings.ContainsFunc(name, func(r rune) bool { return !isTokenChar(r) }):
		return fmt.Sprintf("is %q, which cannot be part of a header's name", clip.Bytes(name, 100))
	case kind != "string" && kind != "integer" && kind != "boolean":
		return "is for a string, an integer or a boolean only"
	case slices.ContainsFunc(others, func(m ParamMark) bool { return strings.EqualFold(m.Header, name) }):
		return fmt.Sprintf("is %q, which another property uses too", name)
	}
	return ""
}

// isTokenChar reports whether a character may be part of a token (RFC 9110, section 5.6.2).
func isTokenChar(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

// ParamMark is a property whose value is also sent as a header.
type ParamMark struct {
	path   []string
	Header string
}

// Value returns the value of the header for the given arguments; false if the header is not sent.
func (m ParamMark) Value(args json.RawMessage) (string, bool) { return headerValue(at(args, m.path)) }

// ParamMarks returns the marks of an input schema.
func ParamMarks(raw json.RawMessage) []ParamMark {
	all, problem := readMarks(raw)
	if problem != "" {
		return nil
	}
	return all
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

// marksOf returns the marks of each tool in a list that has marks.
func marksOf(tools []json.RawMessage) map[string][]ParamMark {
	all := map[string][]ParamMark{}
	for _, raw := range tools {
		var t struct {
			Name        string          `json:"name"`
			InputSchema json.RawMessage `json:"inputSchema"`
		}
		if strings.Contains(string(raw), paramHeader) && json.Unmarshal(raw, &t) == nil {
			if marks := ParamMarks(t.InputSchema); len(marks) > 0 {
				all[t.Name] = marks
			}
		}
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

// at returns the value at a path of an object; nil if there is no value.
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

// headerValue returns the header text for a string, a boolean, or an integer that a double represents
// exactly; false for other values.
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

// headerText encodes a text as the value of a header (MCP specification 2026-07-28, basic/transports,
// encoding of values).
func headerText(text string) string {
	const begin, end = "=?base64?", "?="
	plain := strings.Trim(text, " \t") == text && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) &&
		!(strings.HasPrefix(text, begin) && strings.HasSuffix(text, end))
	if plain {
		return text
	}
	return begin + base64.StdEncoding.EncodeToString([]byte(text)) + end
}
