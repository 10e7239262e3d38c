package action

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/diff"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/schema"
	"toolctl.dev/toolctl/pkg/validate"
)

// SchemaDiff classifies the change of a JSON Schema for users of the old schema.
type SchemaDiff struct {
	*Config
	// Old and New are files, or parts of files as FILE#POINTER; "-" is stdin.
	Old, New string
	As       diff.Direction
}

// Run compares the schemas.
func (d *SchemaDiff) Run(context.Context) (change diff.SchemaChange, err error) {
	if d.As != diff.Input && d.As != diff.Output {
		return change, usagef("--as %q: expected input or output", d.As)
	}
	before, err := d.read(d.Old)
	if err != nil {
		return change, err
	}
	after, err := d.read(d.New)
	if err != nil {
		return change, err
	}
	return diff.NewChecker().Schemas(before, after, d.As, validate.Draft2020)
}

// read reads FILE or FILE#POINTER.
func (d *SchemaDiff) read(name string) (json.RawMessage, error) {
	path, pointer, part := strings.Cut(name, "#")
	if _, err := os.Stat(name); err == nil {
		path, pointer, part = name, "", false
	}
	data, err := d.ReadInput(path, validate.DefaultMaxSchemaBytes)
	if err != nil {
		return nil, err
	}
	if len(data) > validate.DefaultMaxSchemaBytes {
		return nil, invalidf("%s: larger than %d bytes", path, validate.DefaultMaxSchemaBytes)
	}
	raw, violations := manifest.ToJSON(path, data)
	if len(v1.Errors(violations)) > 0 {
		return nil, v1.NewValidationError(v1.ManifestInvalid, path, violations)
	}
	doc, err := validate.Decode(raw)
	if err != nil {
		return nil, invalidf("%s: %w", path, err)
	}
	if part {
		return schemaAt(name, doc, pointer)
	}
	return raw, isSchema(path, doc)
}

// isSchema refuses documents that contain schemas but are not schemas themselves. As a schema, they would have only
// unknown keywords and accept everything.
func isSchema(path string, doc any) error {
	o, _ := doc.(map[string]any)
	for _, key := range []string{"openapi", "swagger"} {
		if _, ok := o[key].(string); ok {
			return usagef("%s is an OpenAPI document: name one of its schemas, as in %s#/components/schemas/NAME, or import both with 'toolctl import openapi' and compare the folders with 'toolctl diff -f NEW --against OLD'", path, path)
		}
	}
	kind, _ := o["kind"].(string)
	if _, ok := o["apiVersion"].(string); ok && kind != "" {
		return usagef("%s is a manifest of kind %s: compare manifests with 'toolctl diff -f NEW --against OLD', or name one of its schemas, as in %s#/spec/input_schema", path, clip.Line(kind), path)
	}
	return nil
}

// schemaAt returns the part of a document that a JSON Pointer (RFC 6901) names. If the part refers to others,
// the result is the document with a reference to the part, because the references start at its root.
func schemaAt(name string, doc any, pointer string) (json.RawMessage, error) {
	text, err := url.PathUnescape(pointer)
	if err != nil || text != "" && text[0] != '/' {
		return nil, usagef("%s: expected a JSON Pointer behind #, such as #/spec/input_schema", name)
	}
	at, missing, ok := schema.At(doc, text)
	if !ok {
		near := ""
		if parent, isMap := at.(map[string]any); isMap {
			near = v1.DidYouMean(missing, slices.Sorted(maps.Keys(parent)))
		}
		return nil, usagef("%s: there is no %q%s", name, missing, near)
	}
	if err := isSchema(name, at); err != nil {
		return nil, err
	}
	part := jsontext.Of(at)
	root, ok := doc.(map[string]any)
	if !ok || !bytes.Contains(part, []byte(`"`+schema.Ref+`":"#`)) {
		return part, nil
	}
	root[schema.Ref] = "#" + pointer
	return jsontext.Of(root), nil
}
