package v1

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Validate returns the violations of the tool by its own rules. Whether its schemas
// compile is checked by the registry.
func (t *Tool) Validate() []Violation {
	fs := append(t.Header.validate(), checkFields(t)...)
	fs = append(fs, reservedName(&t.Header)...)
	s := &t.Spec
	fs = append(fs, t.executorViolations()...)
	fs = append(fs, rootTypeViolations("/spec/input_schema", s.InputSchema)...)
	if len(s.OutputSchema) > 0 {
		fs = append(fs, schemaShape("/spec/output_schema", s.OutputSchema)...)
	}
	for i, r := range s.Redact {
		if r == "" || r == "/" {
			fs = append(fs, Violation{Path: Pointer("/spec/redact", fmt.Sprint(i)), Expected: "a JSON pointer or a key name", Got: quote(r), Message: "an empty redaction matches nothing"})
		}
	}
	fs = append(fs, resourceViolations(&t.Header, "/spec/resources", s.Resources)...)
	fs = append(fs, t.searchViolations()...)
	for i := range s.MockParts {
		fs = append(fs, s.MockParts[i].validate(Pointer("/spec/mock_parts", fmt.Sprint(i)))...)
	}
	if t.FromPromptKit() {
		// PromptKit has modes and forms of its own; a tool that uses them loads and is not ready.
		for i := range fs {
			if fs[i].Path == "/spec/mode" {
				fs[i].Severity = SeverityWarning
			}
		}
	}
	return fs
}

// rootTypeViolations checks what MCP asks of an input schema: an object whose root
// type is "object" (MCP specification, server/tools, Tool.inputSchema).
func rootTypeViolations(path string, schema json.RawMessage) []Violation {
	if len(schema) == 0 {
		return nil // reported as missing
	}
	if fs := schemaShape(path, schema); fs != nil {
		return fs
	}
	var root struct {
		Type json.RawMessage `json:"type"`
	}
	if err := json.Unmarshal(schema, &root); err != nil {
		return []Violation{{Path: path, Expected: "a JSON Schema object", Got: "something else", Message: "a JSON Schema must be an object"}}
	}
	if len(root.Type) == 0 || string(root.Type) == `"object"` {
		return nil
	}
	return []Violation{{Path: path + "/type", Expected: `"object"`, Got: clip(string(root.Type)), Message: `the root type of an input schema must be "object" (MCP specification, server/tools)`}}
}

func schemaShape(path string, schema json.RawMessage) []Violation {
	switch s := strings.TrimSpace(string(schema)); {
	case strings.HasPrefix(s, "{"), path == "/spec/output_schema" && (s == "true" || s == "false"):
		return nil
	}
	return []Violation{{Path: path, Expected: "an object", Got: JSONKind(schema), Message: "a JSON Schema must be an object, got " + JSONKind(schema)}}
}

// JSONKind names the kind of a JSON value for messages: object, array, string,
// number, boolean or null.
func JSONKind(raw json.RawMessage) string {
	for _, c := range raw {
		switch c {
		case ' ', '\t', '\n', '\r':
			continue
		case '{':
			return "object"
		case '[':
			return "array"
		case '"':
			return "string"
		case 't', 'f':
			return "boolean"
		case 'n':
			return "null"
		}
		return "number"
	}
	return "nothing"
}

func (p *Part) validate(path string) []Violation {
	need := func(field string) []Violation {
		return []Violation{{Path: path, Expected: field, Got: "nothing", Message: fmt.Sprintf("a part of type %s needs %s", p.Type, field)}}
	}
	switch p.Type {
	case PartText:
		if p.Text == "" {
			return need("text")
		}
	case PartImage, PartAudio, PartVideo, PartDocument:
		if m := p.Media; p.Data == "" && (m == nil || m.FilePath == "" && m.Data == "" && m.URL == "") {
			return need("data or media")
		}
	case PartResource:
		if p.Resource == nil {
			return need("resource")
		}
	case PartResourceLink:
		if p.URI == "" {
			return need("uri")
		}
	}
	return nil
}
