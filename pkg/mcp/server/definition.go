package server

import (
	"cmp"
	"encoding/json"
	"reflect"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/schema"
)

// definition is a tool as clients get it (MCP specification, server/tools, Tool). It is not
// the SDK's, which would read icons, annotations and _meta only to write them anew.
type definition struct {
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  json.RawMessage `json:"annotations,omitempty"`
	Icons        json.RawMessage `json:"icons,omitempty"`
	Meta         json.RawMessage `json:"_meta,omitempty"`
}

// newDefinition makes what clients get of an offer. Of the definition of an MCP server they
// get what a manifest has no field for, and its title and annotations as they are as
// long as no manifest says otherwise.
func newDefinition(name string, o Offer) definition {
	spec := &o.Tool.Spec
	w := definition{Name: name, Description: spec.Description, InputSchema: withRootType(spec.InputSchema), OutputSchema: spec.OutputSchema}
	var def struct {
		Title       string          `json:"title"`
		Annotations json.RawMessage `json:"annotations"`
		Icons       json.RawMessage `json:"icons"`
		Meta        json.RawMessage `json:"_meta"`
	}
	if len(o.Definition) > 0 && json.Unmarshal(o.Definition, &def) == nil {
		w.Icons, w.Meta = kind(def.Icons, '['), kind(def.Meta, '{')
		said, ok := mcp.ReadHints(def.Annotations)
		said.Title = cmp.Or(def.Title, said.Title)
		if ok && reflect.DeepEqual(said, orNone(spec.Hints)) {
			w.Title, w.Annotations = def.Title, kind(def.Annotations, '{')
			return w
		}
	}
	if h := spec.Hints; h != nil {
		w.Title, w.Annotations = h.Title, annotations(h)
	}
	return w
}

// annotations are hints as MCP has them; none when nothing is said.
func annotations(h *v1.Hints) json.RawMessage {
	if h.ReadOnly == nil && h.Destructive == nil && h.Idempotent == nil && h.OpenWorld == nil {
		return nil
	}
	raw, _ := json.Marshal(struct { // of booleans: it cannot fail
		ReadOnly    *bool `json:"readOnlyHint,omitempty"`
		Destructive *bool `json:"destructiveHint,omitempty"`
		Idempotent  *bool `json:"idempotentHint,omitempty"`
		OpenWorld   *bool `json:"openWorldHint,omitempty"`
	}{h.ReadOnly, h.Destructive, h.Idempotent, h.OpenWorld})
	return raw
}

func orNone(h *v1.Hints) v1.Hints {
	if h == nil {
		return v1.Hints{}
	}
	return *h
}

// kind returns raw when it begins as a value of its kind must.
func kind(raw json.RawMessage, first byte) json.RawMessage {
	if len(raw) == 0 || raw[0] != first {
		return nil
	}
	return raw
}

// forOlder is the tool as older clients can read it: until 2025-11-25 the root type of an output
// schema is object. One that refers to a definition of an object gets the type beside the reference,
// and any other is left out.
func (w definition) forOlder() definition {
	switch {
	case refersToObject(w.OutputSchema):
		w.OutputSchema = withRootType(w.OutputSchema)
	case rootType(w.OutputSchema) != `"object"`:
		w.OutputSchema = nil
	}
	return w
}

// refersToObject reports whether a schema takes objects alone because its root is a reference to one
// of its own definitions that says so.
func refersToObject(raw json.RawMessage) bool {
	var root map[string]any
	if json.Unmarshal(raw, &root) != nil || root["type"] != nil {
		return false
	}
	const deepest = 32
	doc, at := schema.NewDocument(root), root
	for range deepest {
		target, ok := doc.Target(at)
		if at, _ = target.(map[string]any); !ok || at["type"] != nil {
			break
		}
	}
	return at["type"] == "object"
}

// metaOf reads a _meta object so that its values are written as they came.
func metaOf(raw json.RawMessage) map[string]any {
	var values map[string]json.RawMessage
	if json.Unmarshal(raw, &values) != nil || len(values) == 0 {
		return nil
	}
	meta := make(map[string]any, len(values))
	for k, v := range values {
		meta[k] = v
	}
	return meta
}
