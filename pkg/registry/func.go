package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
)

// ModeGo is the mode of a tool made in Go. Manifests cannot use it.
const ModeGo = "go"

// GoTool is a Tool made in Go by [Func], which executes its own calls. Other fields of the manifest, such as
// Spec.Hints, may be set before it is registered.
type GoTool struct {
	v1.Tool
	executor Executor
}

// Func makes a tool of a Go function. It is registered like a manifest, and its calls go
// through the call pipeline: arguments and results are validated, policies apply, and the
// audit log has records.
//
// The schemas come from the types: a struct is an object whose properties have the
// names of the json tags; a field without a tag has its own name in lower camel case
// (Location becomes location), in arguments and results. The tags doc and description describe a
// property, and enum lists its values: `enum:"celsius,fahrenheit"`. A field is optional when
// it is a pointer or has omitempty or omitzero; unknown properties are
// refused. In must be a struct or a pointer to one, a map with string keys, or
// json.RawMessage for any object. A type that has no schema, such as a channel or a recursive type, is
// a violation of the tool: Register refuses it. An Out of json.RawMessage or [v1.Result] has no
// schema; a v1.Result becomes the result unchanged.
//
// An error of fn fails the call as a [v1.ExecutionError] with its text, unless it is
// already one of the typed errors of api/v1. [Session] returns the call that fn executes.
// fn must be safe for concurrent use.
func Func[In, Out any](name, description string, fn func(context.Context, In) (Out, error)) *GoTool {
	t := &GoTool{Tool: v1.Tool{
		Header: v1.Header{APIVersion: v1.APIVersion, Kind: v1.KindTool, Metadata: v1.Metadata{Name: name}},
		Spec:   v1.ToolSpec{Description: description, Mode: ModeGo},
	}, executor: goFunc[In, Out]{name, fn}}
	violation := func(path string, typ reflect.Type, err error) {
		t.Violations = append(t.Violations, v1.Violation{Path: path, Expected: "a Go type with a JSON Schema", Got: typ.String(), Message: fmt.Sprintf("the type %s has no JSON Schema: %v", typ, err)})
	}
	if fn == nil {
		t.Violations = append(t.Violations, v1.Violation{Path: "/spec/mode", Expected: "a function", Got: "nil", Message: "the function is nil"})
	}
	in, out := reflect.TypeFor[In](), reflect.TypeFor[Out]()
	for in.Kind() == reflect.Pointer { // arguments are always an object
		in = in.Elem()
	}
	var err error
	if in == reflect.TypeFor[json.RawMessage]() {
		t.Spec.InputSchema = json.RawMessage(`{"type":"object"}`)
	} else if t.Spec.InputSchema, err = schemaOf(in); err != nil {
		violation("/spec/input_schema", in, err)
	}
	if out != reflect.TypeFor[json.RawMessage]() && out != reflect.TypeFor[v1.Result]() {
		if t.Spec.OutputSchema, err = schemaOf(out); err != nil {
			violation("/spec/output_schema", out, err)
		}
	}
	return t
}

// schemaOf derives the JSON Schema of a type.
func schemaOf(t reflect.Type) (json.RawMessage, error) {
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[[]byte]():          {Type: "string", ContentEncoding: "base64"}, // as encoding/json writes it
	}})
	if err != nil {
		return nil, err
	}
	if err := annotate(s, t); err != nil {
		return nil, err
	}
	return json.Marshal(s)
}

// annotate adds to the schema of a type what the jsonschema library does not read: toolctl's own tags, names for fields
// without a tag, and optional pointer fields.
func annotate(s *jsonschema.Schema, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		if s.Items != nil {
			return annotate(s.Items, t.Elem())
		}
	case reflect.Map:
		if s.AdditionalProperties != nil {
			return annotate(s.AdditionalProperties, t.Elem())
		}
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			name := cmp.Or(tag, f.Name)
			p := s.Properties[name]
			if p == nil || f.Anonymous || !f.IsExported() {
				continue
			}
			if err := annotate(p, f.Type); err != nil {
				return err
			}
			if err := tagged(p, f); err != nil {
				return err
			}
			if f.Type.Kind() == reflect.Pointer {
				s.Required = slices.DeleteFunc(s.Required, func(n string) bool { return n == name })
			}
			if tag == "" {
				if err := rename(s, name, lowerCamel(name)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// goFunc is the executor of one Go tool.
type goFunc[In, Out any] struct {
	name string
	fn   func(context.Context, In) (Out, error)
}

func (goFunc[In, Out]) Name() string { return ModeGo }

func (g goFunc[In, Out]) Execute(ctx context.Context, _ *v1.Tool, args json.RawMessage) (v1.Result, error) {
	res := v1.Result{Attempts: 1}
	in, err := decodeArgs[In](args)
	if err != nil {
		return res, v1.NewValidationError(v1.ArgsInvalid, g.name, []v1.Violation{{Expected: "arguments that fit " + reflect.TypeFor[In]().String(), Got: "others", Message: "the arguments do not fit the tool's Go type: " + err.Error()}})
	}
	out, err := g.fn(ctx, in)
	if whole, ok := any(out).(v1.Result); ok {
		whole.Attempts = max(1, whole.Attempts)
		res = whole
	} else if err == nil {
		if res.Content, err = jsontext.Marshal(out); err == nil {
			res.Content, err = lowered(res.Content, reflect.TypeFor[Out]())
		}
		if err != nil {
			err = fmt.Errorf("encode the result: %w", err)
		}
	}
	return res, typed(ctx, g.name, err)
}
