package openapi

import (
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/openapi/internal/schema"
)

// outputSchema returns the schema of a successful response, or nil if none is known. Several 2xx
// responses with different schemas are joined by anyOf. The default response counts only if no 2xx
// response is declared, because it is then the only success.
func (b *builder) outputSchema(responses *openapi3.Responses) any {
	var ok []string
	for _, code := range responses.Keys() {
		if len(code) == 3 && code[0] == '2' {
			ok = append(ok, code)
		}
	}
	if len(ok) == 0 && responses.Value("default") != nil {
		ok = []string{"default"}
	}
	slices.Sort(ok)
	var schemas []any
	silent := false
	seen := map[string]bool{}
	for _, code := range ok {
		r := responses.Value(code)
		if r == nil || r.Value == nil {
			continue
		}
		name, media := jsonMedia(r.Value.Content)
		if media == nil {
			silent = true
			continue
		}
		if h := mediaHeader(name); h != "" && (h != "application/json" || len(r.Value.Content) > 1) && b.headers["Accept"] == "" {
			b.headers["Accept"] = h
		}
		place, found := b.doc.outline.schemaOf(media.Schema)
		if !found {
			silent = true
			continue
		}
		f := b.doc.schemas.Convert(place.at, place.node, schema.Response)
		if len(f.Violations) > 0 {
			b.note("no output_schema: " + strings.Join(f.Violations, "; "))
			return nil
		}
		if text := string(schema.Encode(f.Value)); !seen[text] {
			seen[text] = true
			schemas = append(schemas, f.Value)
			b.outRefs = append(b.outRefs, f.Refs...)
		}
	}
	if len(schemas) == 0 {
		return nil
	}
	if silent {
		b.note("some 2xx answers are not described as JSON: a result that breaks output_schema is a warning")
		b.validation = &v1.Validation{Result: v1.Warn}
	}
	if len(schemas) == 1 {
		return schemas[0]
	}
	return map[string]any{"anyOf": schemas}
}

// withDefs adds the definitions that a schema needs.
func (b *builder) withDefs(root any, refs []string, dir schema.Direction, what string) (any, []string) {
	m, ok := root.(map[string]any)
	if !ok {
		return root, nil
	}
	defs, cut, violations := b.doc.schemas.Defs(refs, dir, maxSchemaBytes-schema.Size(m))
	if cut > 0 {
		b.note(what + " would be larger than the limit: the parts farthest from its root accept anything")
	}
	if len(defs) == 0 {
		return m, violations
	}
	m = maps.Clone(m)
	m["$defs"] = defs
	return m, violations
}
