package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/validate"
)

// Bounds of a condition in the Common Expression Language.
const (
	maxExpression = 4096    // bytes
	maxCost       = 100_000 // CEL's own units
)

// newCondition reads the when of a response: nothing fits all, an object is a
// subset of the arguments, a text is an expression.
func newCondition(raw json.RawMessage) (condition, error) {
	if len(raw) == 0 {
		return func(context.Context, any, int) (bool, error) { return true, nil }, nil
	}
	want, err := validate.Decode(raw)
	if err != nil {
		return nil, err
	}
	switch want := want.(type) {
	case map[string]any:
		return func(_ context.Context, args any, _ int) (bool, error) { return len(compare(want, args)) == 0, nil }, nil
	case string:
		return newExpression(want)
	}
	return nil, fmt.Errorf("expected an object of arguments or a text in the Common Expression Language, got %s", v1.JSONKind(raw))
}

// expressions is the language: args, an object, and call, a number.
var expressions = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable("args", cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable("call", cel.IntType),
		cel.CrossTypeNumericComparisons(true),
	)
})

func newExpression(text string) (condition, error) {
	if len(text) > maxExpression {
		return nil, fmt.Errorf("the expression is longer than %d bytes", maxExpression)
	}
	env, err := expressions()
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(text)
	if err := issues.Err(); err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		first, _, _ = strings.Cut(first, " expecting {") // all tokens of the language
		return nil, fmt.Errorf("%q is no expression: %s", text, strings.TrimPrefix(first, "ERROR: <input>:"))
	}
	if t := ast.OutputType(); t != cel.BoolType && t != cel.DynType {
		return nil, fmt.Errorf("%q gives %s: expected true or false", text, t)
	}
	program, err := env.Program(ast, cel.CostLimit(maxCost), cel.InterruptCheckFrequency(1000))
	if err != nil {
		return nil, fmt.Errorf("%q is no expression: %w", text, err)
	}
	return func(ctx context.Context, args any, call int) (bool, error) {
		out, _, err := program.ContextEval(ctx, map[string]any{"args": native(args), "call": call})
		if err != nil {
			return false, fmt.Errorf("%q: %w", text, err)
		}
		yes, ok := out.Value().(bool)
		if !ok {
			return false, fmt.Errorf("%q gave %v: expected true or false", text, out.Value())
		}
		return yes, nil
	}, nil
}

// native turns numbers into those of the language: whole ones that fit are int,
// others double.
func native(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, _ := v.Float64() // Decode let it through, so it is a number
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
