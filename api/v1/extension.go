package v1

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// Extension is a field of a manifest's spec that a program adds in Go: the block of an executor in a Tool, or a rule of
// a ToolPolicy. Readers, validation, explain, JSON Schemas and completion use it to support the field.
type Extension struct {
	// Kind is the kind of manifest: KindTool or KindToolPolicy.
	Kind string
	// Name is the name of the field in spec; of a Tool, the executor's name and mode, too.
	Name string
	// Description describes the field in sentences, for people.
	Description string
	// Schema is the JSON Schema of the field's value, draft 2020-12 unless $schema says
	// otherwise. The value of an absent field of a Tool is {}. Default: an executor without
	// a schema has no field.
	Schema json.RawMessage
}

var extensionName = regexp.MustCompile(`^[a-z][a-z0-9]*([_-][a-z0-9]+)*$`)

// Legal reports whether the name of the extension can be the name of a field that spec does
// not have already.
func (e *Extension) Legal() bool {
	t := toolSpec
	if e.Kind == KindToolPolicy {
		t = reflect.TypeFor[ToolPolicySpec]()
	}
	taken := slices.Contains(jsonNames(t), e.Name) || e.Kind == KindTool && slices.Contains(Modes(), e.Name)
	return (e.Kind == KindTool || e.Kind == KindToolPolicy) && extensionName.MatchString(e.Name) && !taken
}

// Extensions are the values of extension fields, by name. In JSON they are next to the other fields of spec.
type Extensions map[string]json.RawMessage

// Names returns the names in order.
func (x Extensions) Names() []string { return slices.Sorted(maps.Keys(x)) }

// MarshalJSON writes the fields, followed by the extensions.
func (s ToolSpec) MarshalJSON() ([]byte, error) {
	type plain ToolSpec
	return s.Extensions.marshal((*plain)(&s))
}

// UnmarshalJSON reads the fields; unknown fields become extensions.
func (s *ToolSpec) UnmarshalJSON(data []byte) error {
	type plain ToolSpec
	return s.Extensions.unmarshal(data, (*plain)(s), toolSpec)
}

// MarshalJSON writes the fields, followed by the extensions.
func (s ToolPolicySpec) MarshalJSON() ([]byte, error) {
	type plain ToolPolicySpec
	return s.Extensions.marshal((*plain)(&s))
}

// UnmarshalJSON reads the fields; unknown fields become extensions.
func (s *ToolPolicySpec) UnmarshalJSON(data []byte) error {
	type plain ToolPolicySpec
	return s.Extensions.unmarshal(data, (*plain)(s), reflect.TypeFor[ToolPolicySpec]())
}

func (x Extensions) marshal(plain any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // the encoder of the whole document decides about escaping
	if err := enc.Encode(plain); err != nil {
		return nil, err
	}
	data := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if len(x) == 0 {
		return data, nil
	}
	data = data[:len(data)-1] // the brace
	for _, name := range x.Names() {
		if len(data) > 1 {
			data = append(data, ',')
		}
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		data = append(append(append(data, key...), ':'), x[name]...)
	}
	return append(data, '}'), nil
}

// unmarshal reads data into plain, whose fields are those of t.
func (x *Extensions) unmarshal(data []byte, plain any, t reflect.Type) error {
	*x = nil
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if dec.Decode(plain) == nil {
		return nil // as nearly always
	}
	if err := json.Unmarshal(data, plain); err != nil {
		return err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	known := jsonNames(t)
	for name, value := range all {
		if !slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, name) }) {
			if *x == nil {
				*x = Extensions{}
			}
			(*x)[name] = value
		}
	}
	return nil
}

// jsonNames returns the names of the fields of a struct in JSON.
func jsonNames(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "-" && name != "" {
			names = append(names, name)
		}
	}
	return names
}
