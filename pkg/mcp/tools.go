package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
)

// tools creates manifests from the definitions that a server listed.
func (u *upstream) tools(definitions []json.RawMessage) (tools []DiscoveredTool, warnings []string) {
	filter, overrides := u.spec.Spec.ToolFilter, u.spec.Spec.Overrides
	at := map[string]int{} // by remote name
	for i, raw := range definitions {
		d := u.tool(raw)
		if d.Remote == "" {
			warnings = append(warnings, fmt.Sprintf("tool %d is left out: %s", i+1, d.Problem))
			continue
		}
		if first, twice := at[d.Remote]; twice {
			if first >= 0 {
				broken(&tools[first], "/metadata/name", "a unique name", fmt.Sprintf("the server lists the tool %q twice", d.Remote))
			}
			continue
		}
		at[d.Remote] = -1
		if filter.Allows(d.Remote) {
			at[d.Remote] = len(tools)
			tools = append(tools, d)
		}
	}
	for name := range overrides {
		if _, ok := at[name]; !ok {
			warnings = append(warnings, fmt.Sprintf("spec.overrides names the tool %q, which the server does not offer", name))
		}
	}
	slices.Sort(warnings)
	slices.SortFunc(tools, func(a, b DiscoveredTool) int { return strings.Compare(a.Tool.Metadata.Name, b.Tool.Metadata.Name) })
	return tools, warnings
}

// definition is an unchanged tool definition (MCP specification, server/tools, Tool). Its fields are kept
// separate, so that an invalid field does not affect others.
type definition map[string]json.RawMessage

// text returns a string field; false if the field has another type.
func (d definition) text(field string) (s string, ok bool) {
	raw, ok := d[field]
	if !ok || string(raw) == "null" {
		return "", true
	}
	return s, json.Unmarshal(raw, &s) == nil
}

// tool creates a manifest from one definition.
func (u *upstream) tool(raw json.RawMessage) DiscoveredTool {
	d := DiscoveredTool{Definition: raw}
	var def definition
	if json.Unmarshal(raw, &def) != nil || def == nil {
		d.Problem = "it is not an object: " + excerpt(raw)
		return d
	}
	name, ok := def.text("name")
	if !ok || name == "" {
		d.Problem = "it has no name"
		return d
	}
	d.Remote = name
	t := v1.NewObject(v1.KindTool).(*v1.Tool)
	d.Tool = t
	local := u.key.Name + "__" + name
	if u.spec.Spec.ToolNames == "bare" {
		local = name
	}
	t.Metadata = v1.Metadata{Name: local, Namespace: u.spec.Metadata.Namespace, Labels: u.spec.Metadata.Labels}
	t.Source.File = "mcpserver/" + u.key.Name
	if u.key.Namespace != v1.DefaultNamespace {
		t.Source.File = "mcpserver/" + u.key.Namespace + "/" + u.key.Name
	}
	t.Spec = v1.ToolSpec{Mode: v1.ModeMCP, MCP: &v1.MCPToolSpec{Server: u.key.Name, Tool: name}, TimeoutMS: u.spec.Spec.TimeoutMS}

	var titleOK, textOK bool
	d.Title, titleOK = def.text("title")
	d.Description, textOK = def.text("description")
	d.Annotations, d.InputSchema, d.OutputSchema = def["annotations"], def["inputSchema"], def["outputSchema"]
	if string(d.OutputSchema) == "null" {
		d.OutputSchema = nil
	}
	t.Spec.Description, t.Spec.InputSchema, t.Spec.OutputSchema = d.Description, d.InputSchema, d.OutputSchema
	hints, hintsOK := ReadHints(d.Annotations)
	t.Spec.Hints = &hints
	if d.Title != "" {
		t.Spec.Hints.Title = d.Title
	}
	u.override(t, name)
	if t.Spec.Description == "" {
		t.Spec.Description = strings.TrimSpace(t.Spec.Hints.Title)
	}
	if t.Spec.Description == "" {
		t.Spec.Description = name
	}

	switch {
	case !isWireName(local):
		msg := fmt.Sprintf("%q is not a legal name of a tool: expected 1 to 64 letters, digits, \"_\" and \"-\"", clip.Bytes(local, 100))
		if isWireName(name) && local != name {
			msg += "; set spec.tool_names: bare, or bind the tool with a Tool manifest"
		}
		broken(&d, "/metadata/name", "1 to 64 letters, digits, \"_\" and \"-\"", msg)
	case !titleOK, !textOK:
		broken(&d, "/spec/description", "a string", "the title or description of the tool is not a string")
	case !hintsOK:
		broken(&d, "/spec/hints", "an object", "the annotations of the tool cannot be read: "+excerpt(d.Annotations))
	case len(t.Spec.InputSchema) == 0 || string(t.Spec.InputSchema) == "null":
		broken(&d, "/spec/input_schema", "a JSON Schema", "the tool has no inputSchema")
	case u.spec.Spec.URL != "" && headerProblem(d.InputSchema) != "":
		broken(&d, "/spec/input_schema", "legal headers", headerProblem(d.InputSchema))
	default:
		for _, f := range t.Validate() {
			if !f.IsWarning() && strings.HasPrefix(f.Path, "/spec/") {
				broken(&d, f.Path, f.Expected, f.Message)
				break
			}
		}
	}
	return d
}

// broken records why a tool cannot be called, for people and for the registry. Only the first problem
// counts.
func broken(d *DiscoveredTool, path, expected, message string) {
	if d.Problem != "" {
		return
	}
	d.Problem = message
	d.Tool.Violations = append(d.Tool.Violations, v1.Violation{Path: path, Expected: expected, Got: "what the server lists", Message: message, Source: d.Tool.Source})
}

// override applies spec.overrides.
func (u *upstream) override(t *v1.Tool, remote string) {
	o, ok := u.spec.Spec.Overrides[remote]
	if !ok {
		return
	}
	s := &t.Spec
	if o.Description != "" {
		s.Description = o.Description
	}
	if o.Hints != nil {
		hints := *o.Hints
		if hints.Title == "" {
			hints.Title = s.Hints.Title
		}
		s.Hints = &hints
	}
	if len(o.InputSchema) > 0 {
		s.InputSchema = o.InputSchema
	}
	if o.TimeoutMS > 0 {
		s.TimeoutMS = o.TimeoutMS
	}
	s.Redact = o.Redact
}

// ReadHints reads the annotations of a tool (MCP specification, ToolAnnotations). It returns false if they
// cannot be read. The hints come from a foreign server: they may describe how a call can be repeated, but
// do not prove that it is harmless.
func ReadHints(raw json.RawMessage) (v1.Hints, bool) {
	if len(raw) == 0 || string(raw) == "null" {
		return v1.Hints{}, true
	}
	var a struct {
		Title       string `json:"title"`
		ReadOnly    *bool  `json:"readOnlyHint"`
		Destructive *bool  `json:"destructiveHint"`
		Idempotent  *bool  `json:"idempotentHint"`
		OpenWorld   *bool  `json:"openWorldHint"`
	}
	if bytes.TrimSpace(raw)[0] != '{' || json.Unmarshal(raw, &a) != nil {
		return v1.Hints{}, false
	}
	return v1.Hints{Title: a.Title, ReadOnly: a.ReadOnly, Destructive: a.Destructive, Idempotent: a.Idempotent, OpenWorld: a.OpenWorld}, true
}

// isWireName reports whether a name may be sent to a model.
func isWireName(s string) bool {
	for _, c := range []byte(s) {
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return s != "" && len(s) <= 64
}
