package template

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

// decode decodes arguments as an executor does.
func decode(t testing.TB, args string) map[string]any {
	t.Helper()
	if args == "" {
		return nil
	}
	var m map[string]any
	dec := json.NewDecoder(strings.NewReader(args))
	dec.UseNumber()
	if err := dec.Decode(&m); err != nil {
		t.Fatalf("arguments %s: %v", args, err)
	}
	return m
}

func TestJSON(t *testing.T) {
	tests := []struct{ name, src, args, want string }{
		{name: "no value at all", src: `{"a": 1}`, want: `{"a": 1}`},
		{name: "space around is cut", src: "\n {} \n", want: `{}`},
		{name: "string inside a string", src: `{"a": "hello {{.x}}"}`, args: `{"x": "you"}`, want: `{"a": "hello you"}`},
		{name: "quotes and backslash inside a string", src: `{"a": "{{.x}}"}`, args: `{"x": "\",\"b\":\"\\\n\u0001"}`, want: `{"a": "\",\"b\":\"\\\n\u0001"}`},
		{name: "string outside a string", src: `{"a": {{.x}}}`, args: `{"x": "1}"}`, want: `{"a": "1}"}`},
		{name: "number outside a string", src: `{"a": {{.x}}}`, args: `{"x": 5}`, want: `{"a": 5}`},
		{name: "number inside a string", src: `{"a": "{{.x}} km"}`, args: `{"x": 5.25}`, want: `{"a": "5.25 km"}`},
		{name: "digits of a long number", src: `[{{.x}}, "{{.x}}", {{json .x}}]`, args: `{"x": 12345678901234567890123}`, want: `[12345678901234567890123, "12345678901234567890123", 12345678901234567890123]`},
		{name: "digits of a long fraction", src: `[{{.x}}]`, args: `{"x": 0.1000000000000000055511151231257827}`, want: `[0.1000000000000000055511151231257827]`},
		{name: "2 to the power of 53 plus 1", src: `[{{.x}}]`, args: `{"x": 9007199254740993}`, want: `[9007199254740993]`},
		{name: "object outside a string", src: `{"a": {{.x}}}`, args: `{"x": {"k": ["<b>", null, 1.50]}}`, want: `{"a": {"k":["<b>",null,1.5]}}`},
		{name: "object inside a string", src: `{"a": "{{.x}}"}`, args: `{"x": {"k": "v"}}`, want: `{"a": "{\"k\":\"v\"}"}`},
		{name: "booleans", src: `[{{.x}}, "{{.x}}"]`, args: `{"x": true}`, want: `[true, "true"]`},
		{name: "null outside a string", src: `{"a": {{.x}}}`, args: `{"x": null}`, want: `{"a": null}`},
		{name: "rendered key", src: `{"{{.k}}": 1, {{.k2}}: 2}`, args: `{"k": "a\":0,\"b", "k2": "c"}`, want: `{"a\":0,\"b": 1, "c": 2}`},
		{name: "rendered keys of two objects may be equal", src: `[{"{{.k}}": 1}, {"{{.k}}": {"{{.k}}": [2]}}]`, args: `{"k": "a"}`, want: `[{"a": 1}, {"a": {"a": [2]}}]`},
		{name: "json outside a string", src: `{"a": {{json .x}}}`, args: `{"x": ["a", {"b": 1}]}`, want: `{"a": ["a",{"b":1}]}`},
		{name: "json inside a string", src: `{"a": "{{json .x}}"}`, args: `{"x": ["a"]}`, want: `{"a": "[\"a\"]"}`},
		{name: "json of an absent argument", src: `{"a": {{json .x}}}`, want: `{"a": null}`},
		{name: "json then upper is a string", src: `{"a": {{json .x | upper}}}`, args: `{"x": {"k": 1}}`, want: `{"a": "{\"K\":1}"}`},
		{name: "text of a function outside a string", src: `{"a": {{upper .x}}, "b": {{trim .y}}}`, args: `{"x": "true", "y": " 5 "}`, want: `{"a": "TRUE", "b": "5"}`},
		{name: "printf of a number outside a string", src: `{"a": {{printf "%.2f" .x}}, "b": {{printf "%d" .y}}}`, args: `{"x": 5, "y": 12}`, want: `{"a": 5.00, "b": 12}`},
		{name: "printf of a string outside a string", src: `{"a": {{printf "%v" .x}}, "b": {{printf "%s" .x}}}`, args: `{"x": "12"}`, want: `{"a": "12", "b": "12"}`},
		{name: "printf with a width is text", src: `[{{printf "%03d" .x}}, {{printf "%03d" .y}}]`, args: `{"x": 7, "y": 777}`, want: `["007", "777"]`},
		{name: "printf through a variable", src: `{{$p := printf "%.1f" .x}}{"a": {{$p}}}`, args: `{"x": 1.26}`, want: `{"a": 1.3}`},
		{name: "constant outside a string", src: `[{{"a"}}, {{1.5}}, {{true}}]`, want: `["a", 1.5, true]`},
		{name: "default of an absent argument", src: `{"u": "{{default "metric" .units}}", "v": {{.units | default "metric"}}}`, want: `{"u": "metric", "v": "metric"}`},
		{name: "default of null and empty", src: `["{{default "d" .x}}", "{{default "d" .y}}"]`, args: `{"x": null, "y": ""}`, want: `["d", "d"]`},
		{name: "default keeps 0 and false", src: `[{{default 10 .n}}, {{default true .b}}]`, args: `{"n": 0, "b": false}`, want: `[0, false]`},
		{name: "if guards", src: `{"a": {{if .x}}{{.x}}{{else}}0{{end}}}`, want: `{"a": 0}`},
		{name: "if of 0 and null is false", src: `[{{if .n}}1{{else}}0{{end}}, {{if .z}}1{{else}}0{{end}}, {{if .s}}1{{else}}0{{end}}]`, args: `{"n": 0, "z": null, "s": "0"}`, want: `[0, 0, 1]`},
		{name: "eq of a string", src: `{"t": {{if eq .units "metric"}}20{{else}}68{{end}}}`, args: `{"units": "metric"}`, want: `{"t": 20}`},
		{name: "eq of an absent argument", src: `{"t": {{if eq .units "metric"}}20{{else}}68{{end}}}`, want: `{"t": 68}`},
		{name: "gt of a whole number and a fraction", src: `[{{gt .n 5}}, {{gt .f 5}}, {{gt .f 5.25}}]`, args: `{"n": 6, "f": 5.5}`, want: `[true, true, true]`},
		{name: "range over a list", src: `[{{range $i, $x := .l}}{{if $i}}, {{end}}{"n": "{{$x}}"}{{end}}]`, args: `{"l": ["a\"", "b"]}`, want: `[{"n": "a\""}, {"n": "b"}]`},
		{name: "range over an object", src: `{ {{range $k, $v := .o}}{{$k}}: {{$v}},{{end}} "z": 0}`, args: `{"o": {"b": 2, "a": 1}}`, want: `{ "a": 1,"b": 2, "z": 0}`},
		{name: "range over null takes else", src: `[{{range .l}}1{{else}}0{{end}}]`, args: `{"l": null}`, want: `[0]`},
		{name: "range over a number argument", src: `[0{{range .n}}, {{.}}{{end}}]`, args: `{"n": 3}`, want: `[0, 0, 1, 2]`},
		{name: "break and continue", src: `[0{{range .n}}{{if eq . 1}}{{continue}}{{end}}{{if eq . 3}}{{break}}{{end}}, {{.}}{{end}}]`, args: `{"n": 9}`, want: `[0, 0, 2]`},
		{name: "with", src: `{"a": {{with .o}}"{{.k}} {{$.s}}"{{else}}0{{end}}}`, args: `{"o": {"k": "v"}, "s": "t\""}`, want: `{"a": "v t\""}`},
		{name: "define and template", src: `{{define "p"}}{"n": "{{.}}"}{{end}}[{{template "p" .a}}, {{template "p" .b}}]`, args: `{"a": "x\"", "b": "y"}`, want: `[{"n": "x\""}, {"n": "y"}]`},
		{name: "a template called inside and outside a string", src: `{{define "v"}}{{.}}{{end}}["{{template "v" .a}}", {{template "v" .a}}]`, args: `{"a": "x\""}`, want: `["x\"", "x\""]`},
		{name: "block", src: `[{{block "b" .a}}{{.}}{{end}}]`, args: `{"a": 1}`, want: `[1]`},
		{name: "variables and assignment", src: `{{$n := 0}}{{range .l}}{{$n = .}}{{end}}[{{$n}}]`, args: `{"l": [1, 2]}`, want: `[2]`},
		{name: "len and index", src: `[{{len .l}}, {{index .l 1}}, {{index .o "k"}}, {{slice .s 1 3}}]`, args: `{"l": ["a", "b"], "o": {"k": "v"}, "s": "wxyz"}`, want: `[2, "b", "v", "xy"]`},
		{name: "join both ways", src: `["{{join ", " .l}}", "{{.l | join "-"}}", "{{join .l "+"}}"]`, args: `{"l": ["a", "\"", 1]}`, want: `["a, \", 1", "a-\"-1", "a+\"+1"]`},
		{name: "text split by a branch keeps its place", src: `{"a": "x{{if .x}}\"{{end}} {{.y}}"}`, args: `{"x": true, "y": "\""}`, want: `{"a": "x\" \""}`},
		{name: "after a whole escape sequence", src: `["\u00e9{{.x}}\\{{.x}}"]`, args: `{"x": "n"}`, want: `["\u00e9n\\n"]`},
		{name: "what is not printed is not checked", src: `{{$x := .absent}}{{/* {{.y}} */}}[1]`, want: `[1]`},
		{name: "and, or, not", src: `[{{and .a .b}}, {{or .absent .b}}, {{not .absent}}]`, args: `{"a": 1, "b": "s"}`, want: `["s", "s", true]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tmpl, err := ParseJSON("mock_template", tt.src)
			if err != nil {
				t.Fatal(err)
			}
			got, err := tmpl.Render(t.Context(), decode(t, tt.args))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestParseLenient(t *testing.T) {
	tests := []struct{ name, src, args, want string }{
		{name: "absent inside a string", src: `{"a": "hello {{.x}}"}`, want: `{"a": "hello <no value>"}`},
		{name: "null inside a string", src: `{"a": "{{.x}}!"}`, args: `{"x": null}`, want: `{"a": "<no value>!"}`},
		{name: "absent outside a string", src: `{"a": {{.x}}}`, want: `{"a": null}`},
		{name: "absent in a loop and a variable", src: `{{$y := .y}}[{{range .l}}"{{.k}}{{$y}}"{{end}}]`, args: `{"l": [{}]}`, want: `["<no value><no value>"]`},
		{name: "absent in a comparison", src: `"{{if eq .x "a"}}A{{else}}B{{end}}"`, want: `"B"`},
		{name: "present", src: `["{{.x}}", {{.x}}]`, args: `{"x": "a\"b"}`, want: `["a\"b", "a\"b"]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tmpl, err := ParseLenient("mock", tt.src)
			if err != nil {
				t.Fatal(err)
			}
			got, err := tmpl.Render(t.Context(), decode(t, tt.args))
			if err != nil || string(got) != tt.want {
				t.Errorf("got %s, %v, want %s", got, err, tt.want)
			}
		})
	}
	if _, err := ParseLenient("mock", "{{"); err == nil {
		t.Error("a template that cannot be read was read")
	}
}

func TestJSONErrors(t *testing.T) {
	tests := []struct{ name, src, args, want string }{
		{name: "absent argument", src: "{\n\"a\": \"{{.city}}\"}", want: `m: line 2: .city: argument "city" is missing: pass it, or use default or if in the template`},
		{name: "absent argument by way of $", src: `[{{range .l}}{{$.city}}{{end}}]`, args: `{"l": [1]}`, want: `m: line 1: $.city: argument "city" is missing: pass it, or use default or if in the template`},
		{name: "absent field of an object", src: `["{{.a.b}}"]`, args: `{"a": {}}`, want: `m: line 1: .a.b: the value is missing: pass it, or use default or if in the template`},
		{name: "field of an absent object", src: `["{{.a.b}}"]`, want: `m: line 1: .a.b: the value is missing: pass it, or use default or if in the template`},
		{name: "field of null", src: `["{{.a.b}}"]`, args: `{"a": null}`, want: `m: line 1: .a.b: no field "b": it is not an object`},
		{name: "field of a string", src: `["{{.a.b}}"]`, args: `{"a": "secret"}`, want: `m: line 1: .a.b: no field "b": it is not an object`},
		{name: "null inside a string", src: `["{{.a}}"]`, args: `{"a": null}`, want: `m: line 1: .a: argument "a" is null: guard it with default or if`},
		{name: "absent argument of a function", src: `["{{upper .a}}"]`, want: `m: line 1: upper .a: its argument is missing: guard it with default or if`},
		{name: "absent argument of print", src: `["{{print .a}}"]`, want: `m: line 1: print .a: its argument is missing: guard it with default or if`},
		{name: "absent argument of an escaper", src: `["{{.a | urlquery}}"]`, want: `m: line 1: urlquery: its argument is missing: guard it with default or if`},
		{name: "absent argument of printf", src: `["{{printf "%s" .a}}"]`, want: `m: line 1: printf "%s" .a: its argument is missing: guard it with default or if`},
		{name: "order of a string and a number", src: `[{{gt .a 5}}]`, args: `{"a": "secret"}`, want: `m: line 1: gt .a 5: cannot order a string and a number: two numbers or two strings are needed`},
		{name: "order of an absent argument", src: `[{{gt .a 5}}]`, want: `m: line 1: gt .a 5: its argument is missing: guard it with default or if`},
		{name: "range over a string", src: `[{{range .a}}{{end}}]`, args: `{"a": "secret"}`, want: `m: line 1: .a: range needs a list, an object or a whole number`},
		{name: "index out of range", src: `[{{index .a 5}}]`, args: `{"a": []}`, want: `m: line 1: index .a 5: index out of range: 5`},
		{name: "call of a value", src: `[{{call .a}}]`, args: `{"a": 1}`, want: `m: line 1: call .a: non-function .a of type int64`},
		{name: "not JSON", src: "{\"a\": 1,\n \"b\" {{.x}}}", args: `{"x": "y"}`, want: `m: the rendered text is not JSON: invalid character '"' after object key at its line 2, column 6`},
		{name: "a string after a digit", src: `{"a": 1{{.x}}}`, args: `{"x": ",\"b\":2"}`, want: `m: the rendered text is not JSON: invalid character '"' after object key:value pair at its line 1, column 8`},
		{name: "cut off", src: `{"a": {{.x}}`, args: `{"x": 1}`, want: `m: the rendered text is not JSON: unexpected end of JSON input at its line 1, column 7`},
		{name: "two values", src: `{{.x}}{{.x}}`, args: `{"x": "a"}`, want: `m: the rendered text is not JSON: invalid character '"' after top-level value at its line 1, column 4`},
		{name: "nothing", src: ` {{if .x}}1{{end}} `, want: `m: the template rendered nothing: expected JSON`},
		{name: "an argument repeats a key", src: `{"role": "user", "{{.k}}": 1}`, args: `{"k": "role"}`, want: `m: the rendered text has a duplicate key in an object`},
		{name: "after a backslash", src: `["\{{.x}}"]`, args: `{"x": "n"}`, want: `m: line 1: .x: a value is in the middle of an escape sequence`},
		{name: "inside a unicode escape", src: `["\u00{{.x}}"]`, args: `{"x": "22"}`, want: `m: line 1: .x: a value is in the middle of an escape sequence`},
		{name: "complex number", src: `[{{1i}}]`, want: `m: line 1: 1i: a value of type complex128 is not JSON`},
		{name: "a loop without end", src: `[{{range 1000000000}}{{end}}]`, want: `m: the template needs more than 1000000 steps`},
		{name: "nested loops", src: `[{{range 99999}}{{range 99999}}{{range 99999}}{{end}}{{end}}{{end}}]`, want: `m: the template needs more than 1000000 steps`},
		{name: "doubling", src: `{{$x := "aaaaaaaaaaaaaaaa"}}{{range 99}}{{$x = print $x $x}}{{end}}[{{$x}}]`, want: `m: line 1: print $x $x: the text is larger than 10485760 bytes`},
		{name: "large output", src: `["{{range 2000}}{{$.x}}{{end}}"]`, args: `{"x": "` + strings.Repeat("x", 10_000) + `"}`, want: `m: the output is larger than 10485760 bytes`},
		{name: "large only when escaped", src: `["{{.x}}{{.x}}"]`, args: `{"x": "` + strings.Repeat(`\u0001`, 1_000_000) + `"}`, want: `m: the output is larger than 10485760 bytes`},
		{name: "exponential calls", src: expo(40), want: `m: the template needs more than 1000000 steps`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tmpl, err := ParseJSON("m", tt.src)
			if err != nil {
				t.Fatal(err)
			}
			out, err := tmpl.Render(t.Context(), decode(t, tt.args))
			if err == nil || err.Error() != tt.want {
				t.Errorf("output %.200s\ngot  %v\nwant %s", out, err, tt.want)
			}
		})
	}
}

// expo returns a template that calls the last of n templates 2^n times.
func expo(n int) string {
	var b strings.Builder
	b.WriteString(`{{define "t0"}}{{end}}`)
	for i := 1; i <= n; i++ {
		b.WriteString(strings.NewReplacer("A", string(rune('0'+i)), "B", string(rune('0'+i-1))).Replace(`{{define "tA"}}{{template "tB"}}{{template "tB"}}{{end}}`))
	}
	return b.String() + `{{template "t` + string(rune('0'+n)) + `"}}`
}

func TestJSONKeepsTheOutputThatIsNotJSON(t *testing.T) {
	tmpl, err := ParseJSON("m", `hello {{.x}}`)
	if err != nil {
		t.Fatal(err)
	}
	_, err = tmpl.Render(t.Context(), map[string]any{"x": "you"})
	var violation *Error
	if !errors.As(err, &violation) || string(violation.Output) != `hello "you"` {
		t.Errorf("got %#v", err)
	}
	if strings.Contains(err.Error(), "you") {
		t.Errorf("the message holds an argument: %v", err)
	}
}

func TestJSONEndsWithItsContext(t *testing.T) {
	tmpl, err := ParseJSON("m", `[{{range 900000}}{{end}}1]`)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tmpl.Render(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: got %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := tmpl.Render(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ended while it runs: got %v", err)
	}
}

func TestRenderingsRunAtOnceAndKeepTheArguments(t *testing.T) {
	tmpl, err := ParseJSON("m", `{"a": "{{.x}}", "l": [{{range $i, $e := .l}}{{if $i}},{{end}}{{$e}}{{end}}]}`)
	if err != nil {
		t.Fatal(err)
	}
	const args = `{"l":[1.50,null,{"k":"v"}],"x":"\""}`
	shared := decode(t, args)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				got, err := tmpl.Render(t.Context(), shared)
				if want := `{"a": "\"", "l": [1.5,null,{"k":"v"}]}`; err != nil || string(got) != want {
					t.Errorf("got %s, %v", got, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if after, err := json.Marshal(shared); err != nil || string(after) != args {
		t.Errorf("the arguments became %s, %v", after, err)
	}
}
