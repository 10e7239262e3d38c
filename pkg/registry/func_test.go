package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/registry"
)

type order struct {
	Customer string            `json:"customer" description:"who orders"`
	Lines    []line            `json:"lines"`
	Note     *string           `json:"note" description:"for the kitchen"`
	Rush     bool              `json:"rush,omitempty"`
	Tags     map[string]string `json:"tags,omitempty"`
	At       time.Time         `json:"at,omitzero"`
	Photo    []byte            `json:"photo,omitempty"`
	Extra    json.RawMessage   `json:"extra,omitempty"`
}

type line struct {
	Item  string `json:"item"`
	Count int    `json:"count" description:"how many"`
}

type receipt struct {
	Total int64 `json:"total"`
}

func TestFuncSchemas(t *testing.T) {
	tool := registry.Func("order", "Takes an order", func(context.Context, order) (receipt, error) { return receipt{}, nil })
	if tool.Broken() || len(tool.Validate()) > 0 {
		t.Fatalf("errors %v %v", tool.Violations, tool.Validate())
	}
	want := `{"type":"object","properties":{` +
		`"customer":{"type":"string","description":"who orders"},` +
		`"lines":{"type":["null","array"],"items":{"type":"object","properties":{"item":{"type":"string"},"count":{"type":"integer","description":"how many"}},"required":["item","count"],"additionalProperties":false}},` +
		`"note":{"type":["null","string"],"description":"for the kitchen"},` +
		`"rush":{"type":"boolean"},` +
		`"tags":{"type":"object","additionalProperties":{"type":"string"}},` +
		`"at":{"type":"string"},` +
		`"photo":{"type":"string","contentEncoding":"base64"},` +
		`"extra":true},` +
		`"required":["customer","lines"],"additionalProperties":false}`
	if got := string(tool.Spec.InputSchema); got != want {
		t.Errorf("input schema\n%s, want\n%s", got, want)
	}
	if got, want := string(tool.Spec.OutputSchema), `{"type":"object","properties":{"total":{"type":"integer"}},"required":["total"],"additionalProperties":false}`; got != want {
		t.Errorf("output schema\n%s, want\n%s", got, want)
	}
}

// TestFuncPointer: arguments are an object, also for a function that takes a pointer to a struct.
func TestFuncPointer(t *testing.T) {
	tool := registry.Func("total", "Adds up", func(_ context.Context, l *line) (receipt, error) { return receipt{int64(l.Count)}, nil })
	if got, want := string(tool.Spec.InputSchema), `{"type":"object","properties":{"item":{"type":"string"},"count":{"type":"integer","description":"how many"}},"required":["item","count"],"additionalProperties":false}`; got != want {
		t.Errorf("input schema\n%s, want\n%s", got, want)
	}
	reg, err := registry.New([]v1.Object{tool}, registry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	res, err := reg.Execute(t.Context(), v1.Call{Tool: "total", Args: json.RawMessage(`{"item":"tea","count":2}`)})
	if err != nil || string(res.Content) != `{"total":2}` {
		t.Errorf("%s, %v", res.Content, err)
	}
}

// TestFuncWholeNumbers: a Go function accepts every number that JSON Schema accepts as an integer.
func TestFuncWholeNumbers(t *testing.T) {
	type numbers struct {
		Count int     `json:"count,omitempty"`
		Big   uint64  `json:"big,omitempty"`
		Price float64 `json:"price,omitempty"`
		List  []int32 `json:"list,omitempty"`
		Note  string  `json:"note,omitempty"`
	}
	reg := must(registry.New([]v1.Object{registry.Func("n", "N", func(_ context.Context, in numbers) (numbers, error) { return in, nil })}, registry.Options{}))
	for _, tt := range []struct{ args, want string }{
		{`{"count":5.0,"price":10.5}`, `{"count":5,"price":10.5}`},
		{`{"count":-5.00,"list":[1.0,2,3e2]}`, `{"count":-5,"list":[1,2,300]}`},
		{`{"big":18446744073709551615.0}`, `{"big":18446744073709551615}`},
		{`{"count":1e3,"note":"5.0 \" 1e3"}`, `{"count":1000,"note":"5.0 \" 1e3"}`},
		{`{"count":"7.0"}`, `{"count":7}`},
		{`{"count":5.5}`, ""},
		{`{"big":1e30}`, ""},
		{`{"list":[3e10]}`, ""},
	} {
		res, err := reg.Execute(t.Context(), v1.Call{Tool: "n", Args: json.RawMessage(tt.args)})
		if tt.want == "" {
			var invalid *v1.ValidationError
			if !errors.As(err, &invalid) {
				t.Errorf("%s: %s, %v", tt.args, res.Content, err)
			}
		} else if err != nil || string(res.Content) != tt.want {
			t.Errorf("%s: %s, %v, want %s", tt.args, res.Content, err, tt.want)
		}
	}
}

func TestFuncTypesWithoutSchema(t *testing.T) {
	type loop struct{ Next *loop }
	tests := []struct {
		name string
		tool v1.Object
		want string
	}{
		{"channel", registry.Func("a", "A", func(context.Context, struct{ C chan int }) (int, error) { return 0, nil }), "/spec/input_schema: the type struct { C chan int } has no JSON Schema"},
		{"a type within itself", registry.Func("a", "A", func(context.Context, loop) (int, error) { return 0, nil }), "has no JSON Schema"},
		{"result", registry.Func("a", "A", func(context.Context, struct{}) (func(), error) { return nil, nil }), "/spec/output_schema: the type func() has no JSON Schema"},
		{"no object", registry.Func("a", "A", func(context.Context, int) (int, error) { return 0, nil }), "/spec/input_schema"},
		{"no function", registry.Func[struct{}, int]("a", "A", nil), "the function is nil"},
		{"bad name", registry.Func("A B", "A", func(context.Context, struct{}) (int, error) { return 0, nil }), "/metadata/name"},
		{"no description", registry.Func("a", "", func(context.Context, struct{}) (int, error) { return 0, nil }), "/spec/description"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			reg := must(registry.New(nil, registry.Options{}))
			err := reg.Register(tt.tool)
			var invalid *v1.ValidationError
			if !errors.As(err, &invalid) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestFuncCalls(t *testing.T) {
	boom := errors.New("the oven is cold")
	reg := must(registry.New([]v1.Object{
		registry.Func("order", "Takes an order", func(ctx context.Context, in order) (receipt, error) {
			n := int64(0)
			for _, l := range in.Lines {
				n += int64(l.Count)
			}
			if in.Note != nil {
				return receipt{}, boom
			}
			return receipt{n}, nil
		}),
		registry.Func("who", "Says who calls", func(ctx context.Context, _ struct{}) (map[string]string, error) {
			s := registry.Session(ctx)
			return map[string]string{"id": s.ID, "call": s.CallID, "turn": s.Turn, "principal": s.Principal}, nil
		}),
		registry.Func("raw", "Gives back", func(_ context.Context, in json.RawMessage) (json.RawMessage, error) { return in, nil }),
		registry.Func("whole", "A whole result", func(context.Context, struct{}) (v1.Result, error) {
			return v1.Result{Status: v1.StatusComplete, Content: json.RawMessage(`1`), Parts: []v1.Part{{Type: v1.PartText, Text: "one"}}}, nil
		}),
		registry.Func("lies", "Breaks its type", func(context.Context, struct{}) (v1.Result, error) {
			return v1.Result{}, &v1.MCPError{Server: "s", Code: 5}
		}),
		registry.Func("bad", "Panics", func(context.Context, struct{}) (int, error) { panic("ouch") }),
		registry.Func("slow", "Waits", func(ctx context.Context, _ struct{}) (int, error) { <-ctx.Done(); return 0, ctx.Err() }),
	}, registry.Options{}))
	ctx := t.Context()
	gone, cancel := context.WithCancel(ctx)
	cancel()
	tests := []struct {
		name       string
		ctx        context.Context
		call       v1.Call
		want, fail string
	}{
		{"typed", ctx, v1.Call{Tool: "order", Args: json.RawMessage(`{"customer":"a","lines":[{"item":"x","count":"2"},{"item":"y","count":3}]}`)}, `{"total":5}`, ""},
		{"arguments are validated", ctx, v1.Call{Tool: "order", Args: json.RawMessage(`{"customer":"a","lines":[],"more":1}`)}, "", v1.ArgsInvalid},
		{"does not fit the type", ctx, v1.Call{Tool: "order", Args: json.RawMessage(`{"customer":"a","lines":[{"item":"x","count":9223372036854775808}]}`)}, "", v1.ArgsInvalid},
		{"its own error", ctx, v1.Call{Tool: "order", Args: json.RawMessage(`{"customer":"a","lines":[],"note":"n"}`)}, "", v1.TypeExecutionFailed},
		{"session", ctx, v1.Call{Tool: "who", ID: "c1", Session: "s1", Turn: "t1", Principal: "p1"}, `{"call":"c1","id":"s1","principal":"p1","turn":"t1"}`, ""},
		{"raw", ctx, v1.Call{Tool: "raw", Args: json.RawMessage(`{"n":12345678901234567890}`)}, `{"n":12345678901234567890}`, ""},
		{"whole result", ctx, v1.Call{Tool: "whole"}, `1`, ""},
		{"typed error stays", ctx, v1.Call{Tool: "lies"}, "", v1.TypeMCPError},
		{"panic", ctx, v1.Call{Tool: "bad"}, "", v1.TypeExecutionFailed},
		{"timeout", ctx, v1.Call{Tool: "slow", Timeout: time.Millisecond}, "", v1.TypeTimeout},
		{"cancelled", gone, v1.Call{Tool: "slow"}, "", v1.TypeCancelled},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res, err := reg.Execute(tt.ctx, tt.call)
			if tt.fail != "" {
				if err == nil || res.Error.Type != tt.fail {
					t.Fatalf("got %+v, %v, want an error of type %s", res, err, tt.fail)
				}
				return
			}
			if err != nil || string(res.Content) != tt.want || res.Attempts != 1 {
				t.Errorf("got %s after %d attempts, %v, want %s", res.Content, res.Attempts, err, tt.want)
			}
		})
	}
	if s := registry.Session(t.Context()); s.ID != "" || s.Logger == nil {
		t.Errorf("outside a call: %+v", s)
	}
}
