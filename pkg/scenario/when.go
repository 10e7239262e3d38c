package scenario

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jmespath"
	"toolctl.dev/toolctl/pkg/validate"
)

// maxExpression is the maximum length of a condition, in bytes.
const maxExpression = 4096

// newCondition reads the when of a response. Without one, the response is for every call. An
// object is a subset of the arguments, and a text is an expression.
func newCondition(raw json.RawMessage) (condition, error) {
	if len(raw) == 0 {
		return func(any, int) (bool, error) { return true, nil }, nil
	}
	want, err := validate.Decode(raw)
	if err != nil {
		return nil, err
	}
	switch want := want.(type) {
	case map[string]any:
		return func(args any, _ int) (bool, error) { return len(compare(want, args)) == 0, nil }, nil
	case string:
		return newExpression(want)
	}
	return nil, fmt.Errorf("expected an object of arguments or a JMESPath expression, got %s", v1.JSONKind(raw))
}

func newExpression(text string) (condition, error) {
	if len(text) > maxExpression {
		return nil, fmt.Errorf("the expression is longer than %d bytes", maxExpression)
	}
	path, err := jmespath.CompileCondition(text)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	return func(args any, call int) (bool, error) {
		yes, err := path.Holds(map[string]any{"args": native(args), "call": float64(call)})
		if err != nil {
			return false, fmt.Errorf("%q: %w", text, err)
		}
		return yes, nil
	}, nil
}

// native converts numbers to float64, the only numbers of JMESPath.
func native(v any) any {
	switch v := v.(type) {
	case json.Number:
		f, _ := v.Float64() // Decode accepted it, so there is no error
		return f
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = native(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, item := range v {
			out[k] = native(item)
		}
		return out
	}
	return v
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
