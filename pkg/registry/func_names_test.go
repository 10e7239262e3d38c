package registry_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/registry"
)

type place struct {
	Location string `doc:"where" enum:"Oslo, Bergen"`
	Days     int    `enum:"1,2,3"`
	HTTPPort int    `json:",omitempty"`
	UserID   *string
	Named    string   `json:"Named,omitempty"`
	Tags     []string `json:"tags,omitempty" enum:"a,b"`
}

type visit struct {
	Where  place
	Places map[string]place
	List   []place
	At     time.Time
	Any    any
}

// TestFuncFieldsWithoutTag: fields without a json tag are lowerCamel in schemas,
// arguments and results; doc and enum describe them.
func TestFuncFieldsWithoutTag(t *testing.T) {
	tool := registry.Func("visit", "Visits", func(_ context.Context, in place) (visit, error) {
		return visit{in, map[string]place{"K": in}, []place{in}, time.Unix(0, 0).UTC(), map[string]any{"Key": place{Location: "x"}}}, nil
	})
	want := `{"type":"object","properties":{` +
		`"location":{"type":"string","description":"where","enum":["Oslo","Bergen"]},` +
		`"days":{"type":"integer","enum":[1,2,3]},` +
		`"httpPort":{"type":"integer"},` +
		`"userID":{"type":["null","string"]},` +
		`"Named":{"type":"string"},` +
		`"tags":{"type":["null","array"],"items":{"type":"string","enum":["a","b"]}}},` +
		`"required":["location","days"],"additionalProperties":false}`
	if got := string(tool.Spec.InputSchema); got != want {
		t.Errorf("input schema\n%s, want\n%s", got, want)
	}
	reg := must(registry.New([]v1.Object{tool}, registry.Options{}))
	res, err := reg.Execute(t.Context(), v1.Call{Tool: "visit", Args: json.RawMessage(`{"location":" oslo","days":2,"httpPort":80,"userID":"u","Named":"n","tags":"a"}`)})
	if err != nil {
		t.Fatal(err)
	}
	one := `{"location":"Oslo","days":2,"httpPort":80,"userID":"u","Named":"n","tags":["a"]}`
	whole := `{"where":` + one + `,"places":{"K":` + one + `},"list":[` + one + `],"at":"1970-01-01T00:00:00Z","any":{"Key":{"Location":"x","Days":0,"UserID":null}}}`
	if string(res.Content) != whole {
		t.Errorf("got\n%s, want\n%s", res.Content, whole)
	}
	for _, args := range []string{`{"Location":"Oslo","days":2}`, `{"location":"Paris","days":2}`, `{"location":"Oslo","days":4}`} {
		if _, err := reg.Execute(t.Context(), v1.Call{Tool: "visit", Args: json.RawMessage(args)}); err == nil {
			t.Errorf("%s is taken", args)
		}
	}
	for _, broken := range []v1.Object{
		registry.Func("a", "A", func(context.Context, struct{ Name, NAME string }) (int, error) { return 0, nil }),
		registry.Func("a", "A", func(context.Context, struct {
			N int `enum:"x"`
		}) (int, error) {
			return 0, nil
		}),
	} {
		if err := reg.Register(broken); err == nil || !strings.Contains(err.Error(), "/spec/input_schema") {
			t.Errorf("got %v", err)
		}
	}
}

// TestArgumentsThatWereClosed: if arguments were truncated and repaired, the result and the audit log say so, and a
// destructive tool is not called.
func TestArgumentsThatWereClosed(t *testing.T) {
	ran := 0
	write := registry.Func("write", "Writes", func(context.Context, struct{ Path string }) (string, error) { ran++; return "ok", nil })
	yes := true
	drop := registry.Func("drop", "Drops", func(context.Context, struct{ Path string }) (string, error) { ran++; return "ok", nil })
	drop.Spec.Hints = &v1.Hints{Destructive: &yes}
	audit := &auditLog{}
	reg := must(registry.New([]v1.Object{write, drop}, registry.Options{Audit: audit}))
	call := v1.Call{Tool: "write", Args: json.RawMessage(`{"path":"/tmp/"}`), Repair: v1.RepairClosed}
	if res, err := reg.Execute(t.Context(), call); err != nil || res.Repair != v1.RepairClosed || ran != 1 {
		t.Errorf("%+v, %v, ran %d", res, err, ran)
	}
	call.Tool = "drop"
	res, err := reg.Execute(t.Context(), call)
	if err == nil || res.Error.Type != v1.ArgsInvalid || !strings.Contains(err.Error(), "cut off") || ran != 1 {
		t.Errorf("%+v, %v, ran %d", res, err, ran)
	}
	for _, line := range audit.lines {
		if line.Repair != v1.RepairClosed {
			t.Errorf("audit: %+v", line)
		}
	}
	if len(audit.lines) < 2 {
		t.Errorf("%d lines", len(audit.lines))
	}
}

// TestNullForNoArguments: null stands for no arguments if the tool coerces.
func TestNullForNoArguments(t *testing.T) {
	loose := registry.Func("loose", "Takes nothing", func(context.Context, struct{}) (int, error) { return 1, nil })
	strict := registry.Func("strict", "Takes nothing", func(context.Context, struct{}) (int, error) { return 1, nil })
	off := false
	strict.Spec.Validation = &v1.Validation{Coerce: &off}
	reg := must(registry.New([]v1.Object{loose, strict}, registry.Options{}))
	if _, err := reg.Execute(t.Context(), v1.Call{Tool: "loose", Args: json.RawMessage(` null `)}); err != nil {
		t.Error(err)
	}
	if _, err := reg.Execute(t.Context(), v1.Call{Tool: "strict", Args: json.RawMessage(`null`)}); err == nil {
		t.Error("null is taken without coercion")
	}
}
