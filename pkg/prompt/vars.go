package prompt

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/validate"
)

// outline is the top level of an object schema.
type outline struct {
	types      []string // types of the root; empty means any type
	required   []string
	properties map[string]property
	order      []string // names of the properties as they are written
	closed     bool     // additionalProperties: false
}

type property struct {
	Types       types           `json:"type"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Default     json.RawMessage `json:"default"`
	Enum        []any           `json:"enum"`
	Const       json.RawMessage `json:"const"`
}

// types is the value of the keyword type: a name or a list of names.
type types []string

func (t *types) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*t = types{one}
		return nil
	}
	var list []string
	_ = json.Unmarshal(data, &list) // the compiler of the schema reports other values
	*t = list
	return nil
}

// readOutline reads a schema as far as it is valid. Compile reports the violations.
func readOutline(schema json.RawMessage) outline {
	var raw struct {
		Required             json.RawMessage `json:"required"`
		Properties           json.RawMessage `json:"properties"`
		AdditionalProperties json.RawMessage `json:"additionalProperties"`
	}
	o := outline{properties: map[string]property{}}
	if json.Unmarshal(schema, &raw) != nil {
		return o
	}
	o.types, o.closed = rootTypes(schema, 0), string(raw.AdditionalProperties) == "false"
	_ = json.Unmarshal(raw.Required, &o.required)
	_ = json.Unmarshal(raw.Properties, &o.properties)
	o.order = keysInOrder(raw.Properties)
	return o
}

// rootTypes returns the types that the root of a schema allows according to type, enum, const, anyOf and oneOf; nil if
// it allows any type.
func rootTypes(schema json.RawMessage, depth int) types {
	const deepest = 8
	var root struct {
		Types types             `json:"type"`
		Enum  []json.RawMessage `json:"enum"`
		Const json.RawMessage   `json:"const"`
		AnyOf []json.RawMessage `json:"anyOf"`
		OneOf []json.RawMessage `json:"oneOf"`
	}
	if json.Unmarshal(schema, &root) != nil || depth > deepest {
		return nil
	}
	if len(root.Types) > 0 {
		return root.Types
	}
	var all types
	add := func(kind string) {
		if !slices.Contains(all, kind) {
			all = append(all, kind)
		}
	}
	if len(root.Const) > 0 {
		root.Enum = append(root.Enum, root.Const)
	}
	for _, v := range root.Enum {
		add(v1.JSONKind(v))
	}
	for _, branch := range append(root.AnyOf, root.OneOf...) {
		kinds := rootTypes(branch, depth+1)
		if len(kinds) == 0 {
			return nil
		}
		for _, k := range kinds {
			add(k)
		}
	}
	return all
}

// keysInOrder returns the names of the members of a JSON object in their order; nil for any other value.
func keysInOrder(object json.RawMessage) (names []string) {
	if !json.Valid(object) {
		return nil
	}
	jsontext.Members(object, func(name string) *[]byte {
		if name = jsontext.Unquote([]byte(`"` + name + `"`)); !slices.Contains(names, name) {
			names = append(names, name)
		}
		return new([]byte)
	})
	return names
}

// takesObject reports whether the variables may be an object.
func (o outline) takesObject() bool { return len(o.types) == 0 || slices.Contains(o.types, "object") }

// TakesObject reports whether the variables are an object. They are, unless the root type of spec.input excludes
// objects.
func (p *Prompt) TakesObject() bool { return p.in.takesObject() }

// Takes reports whether the root type of spec.input allows variables of a type of JSON Schema.
func (p *Prompt) Takes(kind string) bool {
	return len(p.in.types) == 0 || slices.Contains(p.in.types, kind) || kind == "number" && slices.Contains(p.in.types, "integer")
}

// Input describes the type of the variables: "an object", or "a string or an array".
func (p *Prompt) Input() string {
	if p.in.takesObject() {
		return "an object"
	}
	return oneOf(p.in.types)
}

// variables decodes, coerces and validates the variables, and sets defaults. Even if it returns violations, the
// returned value can be used to find more violations.
func (p *Prompt) variables(raw json.RawMessage) (any, []v1.Violation) {
	if len(raw) == 0 && p.in.takesObject() {
		raw = json.RawMessage("{}")
	}
	if len(raw) == 0 {
		return nil, []v1.Violation{{Expected: oneOf(p.in.types), Got: "nothing", Message: fmt.Sprintf("the prompt needs %s: pass one", oneOf(p.in.types))}}
	}
	doc, err := validate.Decode(raw)
	if err != nil {
		message, got := validate.Undecoded("the variables are", err)
		return nil, []v1.Violation{{Expected: "JSON", Got: got, Message: message}}
	}
	vars, isObject := doc.(map[string]any)
	if isObject && p.in.takesObject() {
		p.fillDefaults(vars)
	}
	var violations []v1.Violation
	if p.input != nil {
		if doc, _, violations, err = p.input.Check(doc, true); err != nil {
			if invalid, ok := errors.AsType[*v1.ValidationError](err); ok {
				return doc, invalid.Violations
			}
			return doc, []v1.Violation{{Expected: "a usable spec.input", Got: "a faulty one", Message: err.Error()}}
		}
		vars, isObject = doc.(map[string]any)
	} else if !isObject && len(p.object.Spec.Arguments) > 0 {
		return doc, []v1.Violation{{Expected: "an object", Got: kindOf(doc), Message: "the variables must be an object, got " + kindOf(doc)}}
	}
	return doc, merge(violations, p.missingArguments(vars, isObject))
}

func (p *Prompt) missingArguments(vars map[string]any, isObject bool) []v1.Violation {
	if !isObject {
		return nil
	}
	var violations []v1.Violation
	for _, a := range p.object.Spec.Arguments {
		if v, given := vars[a.Name]; a.Required && (!given || v == nil) {
			violations = append(violations, v1.Violation{Path: v1.Pointer("", a.Name), Expected: "a value", Got: "nothing", Message: fmt.Sprintf("required argument %q is missing", a.Name)})
		}
	}
	return violations
}

// fillDefaults sets absent variables to their defaults.
func (p *Prompt) fillDefaults(vars map[string]any) {
	fill := func(name string, value json.RawMessage) {
		if _, given := vars[name]; given || len(value) == 0 {
			return
		}
		if doc, err := validate.Decode(value); err == nil {
			vars[name] = doc
		}
	}
	for _, a := range p.object.Spec.Arguments {
		fill(a.Name, a.Default)
	}
	for name, prop := range p.in.properties {
		fill(name, prop.Default)
	}
}

// Unused returns a warning for each variable that the manifest does not declare and no template
// reads, because it is probably a mistake.
func (p *Prompt) Unused(vars json.RawMessage) []v1.Violation {
	if p.readsAll() {
		return nil
	}
	known := p.known()
	var violations []v1.Violation
	for _, name := range keysInOrder(vars) {
		if slices.Contains(known, name) {
			continue
		}
		msg := fmt.Sprintf("variable %q is not used by the prompt", name)
		msg += v1.DidYouMean(name, known)
		violations = append(violations, v1.Violation{Severity: v1.SeverityWarning, Path: v1.Pointer("", name), Expected: "a variable of the prompt", Got: name, Message: msg})
	}
	return violations
}

func (p *Prompt) readsAll() bool {
	return p.user != nil && p.user.ReadsAll() || p.system != nil && p.system.ReadsAll()
}

// known returns the names of all variables, declared or read.
func (p *Prompt) known() []string {
	names := p.Variables()
	for _, a := range p.Arguments() {
		if !slices.Contains(names, a.Name) {
			names = append(names, a.Name)
		}
	}
	return names
}
