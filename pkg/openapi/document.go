package openapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/importer"
	"toolctl.dev/toolctl/pkg/openapi/internal/doc"
	"toolctl.dev/toolctl/pkg/openapi/internal/schema"
	jsonschema "toolctl.dev/toolctl/pkg/schema"
)

// A Document is a parsed OpenAPI document. It is not safe for use by several
// goroutines at once.
type Document struct {
	// Source names the document: a path, a URL without its secrets, or "stdin".
	Source string
	// Title and Version are those of the API.
	Title, Version string

	base       string
	set        *doc.Set
	head       *openapi3.T
	outline    *outliner
	schemas    *schema.Converter
	operations []operation
	warnings   []v1.Violation
	warned     map[string]bool
}

// An operation is one method of one path, not yet decoded.
type operation struct {
	path, method string
	at           doc.Location
	raw          map[string]any
	item         map[string]any // path item of the operation
	itemAt       doc.Location
	id           string
	name         string // name of the tool
}

func (o *operation) key() string { return o.method + " " + o.path }

var methods = []string{"GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE"}

func newDocument(set *doc.Set, source, base string) (*Document, error) {
	d := &Document{Source: source, base: base, set: set, warned: map[string]bool{}}
	d.outline = &outliner{set: set, warn: d.warnAt, left: maxOutline}
	root, ok := set.Main.Root.(map[string]any)
	if !ok {
		return nil, invalid(source, v1.Violation{Expected: "an object", Message: "an OpenAPI document must be an object"})
	}
	v, violation := version(root)
	if violation != nil {
		return nil, invalid(source, *violation)
	}
	d.schemas = schema.New(set, strings.HasPrefix(v, "3.0"), d.warnAt)
	d.head = d.decodeHead(root, v)
	d.Title, d.Version = d.head.Info.Title, d.head.Info.Version
	if dialect, ok := root["jsonSchemaDialect"].(string); ok && !strings.Contains(dialect, "2020-12") && !strings.Contains(dialect, "spec.openapis.org/oas/3.1/") {
		d.warn("/jsonSchemaDialect", "the schema dialect "+quote(dialect)+" is read as JSON Schema 2020-12")
	}
	d.findOperations(root)
	return d, nil
}

// version reads the field openapi. An unquoted 3.1 is a YAML number.
func version(root map[string]any) (string, *v1.Violation) {
	if s, ok := root["swagger"]; ok && root["openapi"] == nil {
		return "", &v1.Violation{Path: "/swagger", Expected: "OpenAPI 3.0 or 3.1", Got: fmt.Sprint(s), Message: fmt.Sprintf("Swagger %v documents are not read: convert it to OpenAPI 3 first", s)}
	}
	var v string
	switch s := root["openapi"].(type) {
	case string:
		v = s
	case json.Number:
		v = string(s)
	case nil:
		return "", &v1.Violation{Path: "/openapi", Expected: "OpenAPI 3.0 or 3.1", Got: "nothing", Message: `not an OpenAPI document: the field "openapi" is missing`}
	}
	for _, p := range []string{"3.0", "3.1"} {
		if v == p || strings.HasPrefix(v, p+".") {
			return v, nil
		}
	}
	return "", &v1.Violation{Path: "/openapi", Expected: "3.0 or 3.1", Got: quote(v), Message: fmt.Sprintf("OpenAPI version %s is not supported: expected 3.0 or 3.1", quote(v))}
}

// decodeHead decodes all fields except paths. It leaves out parts that kin-openapi cannot read,
// with a warning.
func (d *Document) decodeHead(root map[string]any, v string) *openapi3.T {
	info, _ := root["info"].(map[string]any)
	head := &openapi3.T{OpenAPI: v, Info: &openapi3.Info{Title: text(info["title"]), Version: text(info["version"])}}
	if list, ok := root["servers"].([]any); ok {
		if s, err := decode[openapi3.Servers](serverText(list)); err != nil {
			d.warn("/servers", err.Error()+": left out")
		} else {
			head.Servers = *s
		}
	}
	if list, ok := root["security"].([]any); ok {
		if s, err := decode[openapi3.SecurityRequirements](list); err != nil {
			d.warn("/security", err.Error()+": left out")
		} else {
			head.Security = *s
		}
	}
	components, _ := root["components"].(map[string]any)
	schemes, _ := components["securitySchemes"].(map[string]any)
	head.Components = &openapi3.Components{SecuritySchemes: openapi3.SecuritySchemes{}}
	for _, name := range slices.Sorted(maps.Keys(schemes)) {
		at := doc.Location{File: d.set.Main}.Child("components", "securitySchemes", name)
		_, raw, err := d.outline.follow(at, schemes[name])
		var s *openapi3.SecurityScheme
		if err == nil {
			s, err = decode[openapi3.SecurityScheme](raw)
		}
		if err != nil {
			d.warn(at.Pointer, err.Error()+": left out")
			continue
		}
		head.Components.SecuritySchemes[name] = &openapi3.SecuritySchemeRef{Value: s}
	}
	return head
}

// text reads a scalar as text: an unquoted version 1.0 is a YAML number.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return string(v)
	}
	return ""
}

// serverText converts the values of server variables to text: an unquoted port is a YAML number.
func serverText(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = serverText(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = serverText(e)
		}
		return out
	case json.Number:
		return string(v)
	case bool:
		return fmt.Sprint(v)
	}
	return v
}

// findOperations lists all operations by path and method, and names them. The names do not depend
// on which operations are imported.
func (d *Document) findOperations(root map[string]any) {
	paths, _ := root["paths"].(map[string]any)
	base := doc.Location{File: d.set.Main}.Child("paths")
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if !strings.HasPrefix(path, "/") {
			if !strings.HasPrefix(path, "x-") {
				d.warn(base.Child(path).Pointer, `a path must start with "/": left out`)
			}
			continue
		}
		at, item, err := d.pathItem(base.Child(path), paths[path])
		if err != nil {
			d.warn(base.Child(path).Pointer, err.Error()+": left out")
			continue
		}
		for _, m := range methods {
			raw, ok := item[strings.ToLower(m)].(map[string]any)
			if !ok {
				continue
			}
			id, _ := raw["operationId"].(string)
			d.operations = append(d.operations, operation{path: path, method: m, raw: raw, at: at.Child(strings.ToLower(m)), item: item, itemAt: at, id: id})
		}
	}
}

// pathItem follows the reference of a path item. Fields beside the reference win; OpenAPI 3.1.1,
// section 4.8.9, leaves this undefined.
func (d *Document) pathItem(at doc.Location, node any) (doc.Location, map[string]any, error) {
	m, ok := node.(map[string]any)
	if !ok {
		return at, nil, errors.New("a path item must be an object")
	}
	if _, ok := jsonschema.Reference(m); !ok {
		return at, m, nil
	}
	target, item, err := d.outline.follow(at, m)
	if err != nil {
		return at, nil, err
	}
	for k := range m {
		if slices.Contains(methods, strings.ToUpper(k)) || k == "parameters" || k == "servers" {
			d.warn(at.Child(k).Pointer, "a field beside the "+jsonschema.Ref+" of a path item is left out")
		}
	}
	return target, item, nil
}

// nameOperations gives each operation the name of its tool. If several operations have the same
// name, the first keeps it and the others get a unique suffix.
func (d *Document) nameOperations(prefix string) {
	taken := map[string]bool{}
	for i := range d.operations {
		o := &d.operations[i]
		o.name = toolName(prefix, o.id, o.method, o.path)
		if taken[o.name] {
			o.name = importer.UniqueName(o.name, o.key())
		}
		taken[o.name] = true
	}
}

func (d *Document) warnAt(at doc.Location, message string) {
	if at.File.Name != "" {
		message = at.File.Name + ": " + message
	}
	d.warn(at.Pointer, message)
}

// maxWarnings is the maximum number of warnings kept for a document.
const maxWarnings = 10_000

func (d *Document) warn(pointer, message string) {
	key := pointer + "\x00" + message
	if d.warned[key] || len(d.warnings) >= maxWarnings {
		return
	}
	d.warned[key] = true
	d.warnings = append(d.warnings, v1.Violation{Path: pointer, Message: message, Severity: v1.SeverityWarning, Source: v1.Source{File: d.Source}})
}

// check validates the document with kin-openapi. Its findings are warnings, because many public
// documents break a rule and are still usable.
func (d *Document) check(ctx context.Context, items map[string]*openapi3.PathItem) {
	defer func() { // kin-openapi gets untrusted data; a bug in it must not end the process
		if r := recover(); r != nil {
			d.warn("", fmt.Sprintf("the document could not be checked: %v", r))
		}
	}()
	doc := *d.head
	doc.Paths = openapi3.NewPaths()
	for path, item := range items {
		doc.Paths.Set(path, item)
	}
	err := doc.Validate(ctx, openapi3.EnableMultiError(), openapi3.DisableExamplesValidation(), openapi3.DisableSchemaDefaultsValidation())
	var many openapi3.MultiError
	switch {
	case err == nil:
	case errors.As(err, &many):
		for _, e := range many {
			d.warn("", e.Error())
		}
	default:
		d.warn("", err.Error())
	}
}
