package schemas

import (
	"encoding/json"
	"fmt"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// specs are the definitions that extensions of a kind add fields to.
var specs = map[string]string{v1.KindTool: "ToolSpec", v1.KindToolPolicy: "ToolPolicySpec"}

// extend adds the field of an extension to a file that has its spec.
func (f *schemaFile) extend(e v1.Extension) error {
	spec := f.Definitions[specs[e.Kind]]
	if spec == nil {
		return nil
	}
	if mode := spec.Properties.get("mode"); e.Kind == v1.KindTool && mode != nil {
		mode.Enum = append(mode.Enum, e.Name)
	}
	if len(e.Schema) == 0 {
		return nil
	}
	var own schemaFile
	if err := json.Unmarshal(e.Schema, &own); err != nil {
		return err
	}
	prefix := e.Name + "."
	own.rename(&own.node, prefix, map[*node]bool{})
	for name, n := range own.Definitions {
		own.rename(n, prefix, map[*node]bool{})
		f.Definitions[prefix+name] = n
	}
	field := own.node
	if e.Description != "" {
		field.Description = e.Description
	}
	spec.Properties = append(spec.Properties, property{e.Name, &field})
	return nil
}

// rename makes the references of an extension's schema those of the file that it joins.
func (f *schemaFile) rename(n *node, prefix string, seen map[*node]bool) {
	if n == nil || seen[n] {
		return
	}
	seen[n] = true
	for _, start := range []string{"#/definitions/", "#/$defs/"} {
		if name, ok := strings.CutPrefix(n.Ref, start); ok {
			n.Ref = definitions + prefix + name
		}
	}
	f.rename(n.Items, prefix, seen)
	f.rename(n.Values.node, prefix, seen)
	for _, p := range n.Properties {
		f.rename(p.node, prefix, seen)
	}
	for _, a := range n.AllOf {
		f.rename(a, prefix, seen)
	}
}

// definitions is how references to shared types begin.
const definitions = "#/definitions/"

// extended adds the fields of extensions to a schema file. The keys of what it returns
// are sorted.
func extended(data []byte, extensions []v1.Extension) ([]byte, error) {
	var file map[string]any
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	shared, _ := file["definitions"].(map[string]any)
	for _, e := range extensions {
		spec, _ := shared[specs[e.Kind]].(map[string]any)
		properties, _ := spec["properties"].(map[string]any)
		if properties == nil {
			continue
		}
		if e.Kind == v1.KindTool {
			if mode, ok := properties["mode"].(map[string]any); ok {
				values, _ := mode["enum"].([]any)
				mode["enum"] = append(values, e.Name)
			}
		}
		if len(e.Schema) == 0 {
			continue
		}
		var own any
		if err := json.Unmarshal(e.Schema, &own); err != nil {
			return nil, fmt.Errorf("schema of %s: %w", e.Name, err)
		}
		if object, ok := own.(map[string]any); ok {
			if object["$id"] == nil { // so that its references stay its own
				object["$id"] = fmt.Sprintf("https://toolctl.dev/schemas/%s/%s.json", strings.ToLower(e.Kind), e.Name)
			}
			if e.Description != "" {
				object["description"] = e.Description
			}
		}
		properties[e.Name] = own
		if e.Kind == v1.KindTool {
			others, _ := spec["anyOf"].([]any) // one of them says what carries the tool out
			spec["anyOf"] = append(others, map[string]any{"required": []string{e.Name}})
		}
	}
	out, err := json.MarshalIndent(file, "", "  ")
	return append(out, '\n'), err
}
