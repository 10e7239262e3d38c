package registry

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/schema"
	"toolctl.dev/toolctl/pkg/validate"
)

// Extender is an [Executor] with a configuration block of its own: spec.NAME, in a Tool whose mode is NAME. The
// executor finds the block in Spec.Extensions.
type Extender interface {
	// Extension describes the block. The registry fills in its kind and name; without a schema there is no block. An
	// object schema that has properties and does not mention additional ones is closed, because manifests are strict.
	Extension() v1.Extension
}

// Extensions returns the extensions of manifests by executors and rules written in Go. Pass it to
// manifest.Options.Extensions and the schema functions, so that readers, explain, JSON Schemas and completion match a
// registry with these executors and rules. It returns an error if a name or a schema cannot be used.
func Extensions(executors []Executor, rules []policy.Rule) ([]v1.Extension, error) {
	var all []v1.Extension
	add := func(what string, e v1.Extension) error {
		if !e.Legal() {
			return fmt.Errorf("registry: %s %q: the name belongs to another field, or contains characters other than lower-case letters, digits, '_' and '-'", what, e.Name)
		}
		if len(e.Schema) > 0 {
			e.Schema = closed(e.Schema)
			if err := validate.NewCache(validate.Options{}).Schema(e.Schema, validate.Draft2020).Compile(); err != nil {
				return fmt.Errorf("registry: the schema of %s %q: %w", what, e.Name, err)
			}
		}
		if slices.ContainsFunc(all, func(o v1.Extension) bool { return o.Kind == e.Kind && o.Name == e.Name }) {
			return fmt.Errorf("registry: two extensions of kind %s are named %q", e.Kind, e.Name)
		}
		all = append(all, e)
		return nil
	}
	for _, x := range executors {
		e := v1.Extension{}
		if ext, ok := x.(Extender); ok {
			e = ext.Extension()
		}
		e.Kind, e.Name = v1.KindTool, x.Name()
		if slices.Contains(v1.ExecutorNames(), e.Name) || len(e.Schema) == 0 && !e.Legal() {
			continue // its block is a field of v1.ToolSpec, or its name is reserved for tools made in Go
		}
		if err := add("the executor", e); err != nil {
			return nil, err
		}
	}
	for _, r := range rules {
		if err := add("the rule", r.Extension()); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// extension is an extension with a compiled schema.
type extension struct {
	v1.Extension
	schema *validate.Schema
}

// extend registers the manifest extensions of the executors and rules.
func (r *Registry) extend() error {
	all, err := Extensions(r.opts.Executors, r.opts.Rules)
	for _, e := range all {
		x := extension{Extension: e}
		if len(e.Schema) > 0 {
			x.schema = r.schemas.Schema(e.Schema, validate.Draft2020)
		}
		r.extensions = append(r.extensions, x)
	}
	return err
}

// published returns the extensions in the form that readers use.
func (r *Registry) published() []v1.Extension {
	all := make([]v1.Extension, len(r.extensions))
	for i, e := range r.extensions {
		all[i] = e.Extension
	}
	return all
}

// checkExtensions returns the violations of the extension fields of an object. The reader does not decode these fields,
// so they are validated before use.
func (r *Registry) checkExtensions(o v1.Object) []v1.Violation {
	var fs []v1.Violation
	switch o := o.(type) {
	case *v1.Tool:
		fs = r.checkFields(o.Head(), v1.KindTool, "/spec", o.Spec.Extensions)
		for _, e := range r.extensions {
			if len(o.Spec.Extensions) > 0 || e.Kind != v1.KindTool || e.Name != o.Spec.Mode || e.schema == nil {
				continue
			}
			if bad, err := e.schema.ValidateJSON([]byte("{}")); err != nil || len(bad) > 0 {
				fs = append(fs, v1.Violation{Path: "/spec/mode", Expected: "spec." + e.Name, Got: "no spec." + e.Name, Message: fmt.Sprintf("mode %s needs spec.%s", e.Name, e.Name), Source: o.Field("/spec/mode")})
			}
		}
	case *v1.ToolPolicy:
		fs = r.checkFields(o.Head(), v1.KindToolPolicy, "/spec", o.Spec.Extensions)
	case *v1.Prompt:
		if o.Spec.Policy != nil {
			fs = r.checkFields(o.Head(), v1.KindToolPolicy, "/spec/policy", o.Spec.Policy.Extensions)
		}
	case *v1.Scenario:
		if o.Spec.Policy != nil {
			fs = r.checkFields(o.Head(), v1.KindToolPolicy, "/spec/policy", o.Spec.Policy.Extensions)
		}
	}
	return fs
}

func (r *Registry) checkFields(h *v1.Header, kind, path string, fields v1.Extensions) []v1.Violation {
	var fs []v1.Violation
	for _, name := range fields.Names() {
		at := v1.Pointer(path, name)
		i := slices.IndexFunc(r.extensions, func(e extension) bool { return e.Kind == kind && e.Name == name && e.schema != nil })
		if i < 0 {
			fs = append(fs, v1.Violation{Path: at, Expected: "a known field", Got: fmt.Sprintf("%q", name), Message: fmt.Sprintf("unknown field %q: this program has no such executor or rule", name), Source: h.Field(at)})
			continue
		}
		bad, err := r.extensions[i].schema.ValidateJSON(fields[name])
		if err != nil {
			bad = []v1.Violation{{Message: err.Error()}}
		}
		for j := range bad {
			suggest(&bad[j], r.extensions[i].Schema)
		}
		fs = append(fs, under(h, at, bad)...)
	}
	return fs
}

// suggest adds the nearest name to a violation by an unknown property.
func suggest(v *v1.Violation, schema json.RawMessage) {
	if !strings.HasPrefix(v.Message, "unknown property ") {
		return
	}
	steps := strings.Split(v.Path, "/")
	name := steps[len(steps)-1]
	var at any
	if json.Unmarshal(schema, &at) != nil {
		return
	}
	for _, step := range steps[1 : len(steps)-1] {
		node, _ := at.(map[string]any)
		properties, _ := node["properties"].(map[string]any)
		if at = properties[step]; at == nil {
			at = node["items"]
		}
	}
	node, _ := at.(map[string]any)
	properties, _ := node["properties"].(map[string]any)
	var names []string
	for n := range properties {
		names = append(names, n)
	}
	slices.Sort(names)
	if near := v1.Nearest(name, names); near != "" {
		v.Expected = fmt.Sprintf("%q", near)
		v.Message += fmt.Sprintf("; did you mean %q?", near)
	}
}

// closed returns the schema with additionalProperties false in each object with properties, unless the schema sets it.
func closed(raw json.RawMessage) json.RawMessage {
	var doc any
	if json.Unmarshal(raw, &doc) != nil {
		return raw // the schema does not compile
	}
	var walk func(v any)
	walk = func(v any) {
		node, ok := v.(map[string]any)
		if !ok {
			return
		}
		speaks := slices.ContainsFunc([]string{"additionalProperties", "unevaluatedProperties", "patternProperties", "allOf", "anyOf", "oneOf", "if", schema.Ref, schema.DynamicRef},
			func(k string) bool { _, has := node[k]; return has })
		if properties, ok := node["properties"].(map[string]any); ok {
			for _, p := range properties {
				walk(p)
			}
			if !speaks {
				node["additionalProperties"] = false
			}
		}
		walk(node["items"])
		walk(node["additionalProperties"])
		for _, defs := range []string{"$defs", "definitions"} {
			if all, ok := node[defs].(map[string]any); ok {
				for _, d := range all {
					walk(d)
				}
			}
		}
	}
	walk(doc)
	out, err := jsontext.Marshal(doc)
	if err != nil {
		return raw
	}
	return out
}
