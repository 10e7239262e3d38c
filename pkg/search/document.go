package search

import (
	"encoding/json"
	"maps"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/schema"
)

// Bounds of what is read of a tool's input schema.
const (
	maxParameters = 500
	maxDepth      = 8 // of schemas in schemas
)

// DocumentOf returns what a search knows of a tool that clients call by the given name. The server is the one that the
// tool belongs to; nil if there is none.
func DocumentOf(name string, t *v1.Tool, server *v1.MCPServer) Document {
	s := &t.Spec
	d := Document{Name: name, Description: s.Description, Labels: t.Metadata.Labels, Asks: slices.Clone(s.Keywords)}
	if s.Hints != nil {
		d.Title = s.Hints.Title
	}
	for _, e := range s.Examples {
		if e.Ask != "" {
			d.Asks = append(d.Asks, e.Ask)
		}
	}
	if server != nil {
		d.Server, d.ServerDescription = server.Metadata.Name, server.Spec.Description
		d.Labels = maps.Clone(server.Metadata.Labels)
		if d.Labels == nil {
			d.Labels = map[string]string{}
		}
		maps.Copy(d.Labels, t.Metadata.Labels)
	}
	var root any
	if json.Unmarshal(s.InputSchema, &root) == nil {
		d.Parameters = parameters(nil, root, 0)
	}
	return d
}

// parameters appends the parameters of a schema, nested ones included, in a fixed order. The texts of alternatives (anyOf)
// and of items belong to the parameter before them.
func parameters(all []Parameter, of any, depth int) []Parameter {
	for _, sub := range schema.Subschemas(of, "", 0) {
		if len(all) == maxParameters || depth == maxDepth {
			break
		}
		object, _ := sub.Schema.(map[string]any)
		var p Parameter
		if sub.Role == schema.ByName {
			p.Name = sub.Token
		}
		p.Description, _ = object["description"].(string)
		values, _ := object["enum"].([]any)
		for _, v := range values {
			if text, ok := v.(string); ok {
				p.Enum = append(p.Enum, text)
			}
		}
		if p.Name+p.Description != "" || p.Enum != nil {
			all = append(all, p)
		}
		all = parameters(all, sub.Schema, depth+1)
	}
	return all
}
