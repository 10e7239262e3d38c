package mcp

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestHeaderProblem(t *testing.T) {
	tests := []struct{ name, properties, want string }{
		{"none", `"a":{"type":"string"}`, ""},
		{"good", `"a":{"type":"string","x-mcp-header":"Region"},"b":{"type":"integer","x-mcp-header":"Zone"},"c":{"type":"boolean","x-mcp-header":"On"}`, ""},
		{"as a name of a property", `"x-mcp-header":{"type":"string"}`, ""},
		{"empty", `"a":{"type":"string","x-mcp-header":""}`, "x-mcp-header of the property /a must be a non-empty string"},
		{"no text", `"a":{"type":"string","x-mcp-header":1}`, "must be a non-empty string"},
		{"a number", `"a":{"type":"number","x-mcp-header":"R"}`, "is for a string, an integer or a boolean only"},
		{"an object", `"a":{"type":"object","x-mcp-header":"R"}`, "is for a string"},
		{"no type", `"a":{"x-mcp-header":"R"}`, "is for a string"},
		{"twice", `"a":{"type":"string","x-mcp-header":"R"},"b":{"type":"string","x-mcp-header":"r"}`, `of the property /b is "r", which another property uses too`},
		{"a blank", `"a":{"type":"string","x-mcp-header":"My Region"}`, `is "My Region", which cannot be part of a header's name`},
		{"a colon", `"a":{"type":"string","x-mcp-header":"R:x"}`, "cannot be part"},
		{"not ASCII", `"a":{"type":"string","x-mcp-header":"Région"}`, "cannot be part"},
		{"a line break", `"a":{"type":"string","x-mcp-header":"R\r\nX"}`, "cannot be part"},
		{"deep", `"a":{"type":"object","properties":{"b":{"type":"array","x-mcp-header":"R"}}}`, "of the property /a/b is for"},
		{"in the items of a list", `"a":{"type":"array","items":{"type":"string","x-mcp-header":"R"}}`, "x-mcp-header within /a/items is not on a property of the arguments"},
		{"in one of several schemas", `"a":{"anyOf":[{"type":"object"},{"properties":{"b":{"type":"string","x-mcp-header":"R"}}}]}`, "x-mcp-header within /a/anyOf is not"},
		{"in a definition", `"a":{"$defs":{"d":{"type":"string","x-mcp-header":"R"}}}`, "x-mcp-header within /a/$defs is not"},
		{"as a name of a property of a list's items", `"a":{"items":{"properties":{"x-mcp-header":{"type":"string"}}}}`, ""},
		{"as a name of a definition", `"a":{"$defs":{"x-mcp-header":{"type":"string"}}}`, ""},
		{"in a default", `"a":{"type":"object","default":{"x-mcp-header":"R"},"enum":[{"x-mcp-header":"R"}]}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := headerProblem(json.RawMessage(`{"type":"object","properties":{` + tt.properties + `}}`))
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if got := headerProblem(json.RawMessage(`{"type":"object","x-mcp-header":"R"}`)); !strings.Contains(got, "of the whole schema") {
		t.Errorf("on the schema: %q", got)
	}
	for _, in := range []string{`{"items":`, `{"properties":{"a":`} {
		_ = headerProblem(json.RawMessage(strings.Repeat(in, 5000) + `{"x-mcp-header":1}` + strings.Repeat("}", 5000*strings.Count(in, "{"))))
	}
	deep := strings.Repeat(`{"properties":{"a":`, 5000) + `{"x-mcp-header":1}` + strings.Repeat("}}", 5000)
	_ = headerProblem(json.RawMessage(deep)) // ends, and does not overflow
}
