package server

import (
	"cmp"
	"encoding/json"
	"reflect"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/schema"
)

// definition is a tool as clients get it (MCP specification, server/tools, Tool). The SDK's type would
// decode icons, annotations and _meta only to encode them again.
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

// newDefinition returns the definition of an offer for clients. It takes the fields that a manifest lacks
// from the definition of the MCP server, and also title and annotations unless a manifest changes them.
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

// Size returns the number of bytes that the tool takes in a list for clients.
func (o Offer) Size() int {
	raw, err := json.Marshal(newDefinition(o.Tool.Metadata.Name, o))
	if err != nil { // it is not listed
		return 0
	}
	return len(raw)
}

// annotations returns hints in the form of MCP; nil if no hint is set.
func annotations(h *v1.Hints) json.RawMessage {
	if h.ReadOnly == nil && h.Destructive == nil && h.Idempotent == nil && h.OpenWorld == nil {
		return nil
	}
	raw, _ := json.Marshal(struct { // booleans: encoding cannot fail
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

// kind returns raw if it begins with the given byte; otherwise nil.
func kind(raw json.RawMessage, first byte) json.RawMessage {
	if len(raw) == 0 || raw[0] != first {
		return nil
	}
	return raw
}

// forOlder returns the definition for older clients: until 2025-11-25 the root type of an output schema
// must be object. If the schema refers to a definition of an object, the type is added beside the
// reference. Any other schema is left out.
func (w definition) forOlder() definition {
	switch {
	case refersToObject(w.OutputSchema):
		w.OutputSchema = withRootType(w.OutputSchema)
	case rootType(w.OutputSchema) != `"object"`:
		w.OutputSchema = nil
	}
	return w
}

// refersToObject reports whether a schema allows only objects because its root refers to one of its own
// definitions with that type.
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

// metaOf parses a _meta object, whose values are written unchanged later.
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
