package template

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"toolctl.dev/toolctl/internal/jsontext"
)

func TestFunctions(t *testing.T) {
	tests := []struct{ name, src, args, want, wantErr string }{
		{name: "upper of a number", src: `{{upper .x}}`, args: `{"x": 1e2}`, want: `100`},
		{name: "trim and lower", src: `{{.x | trim | lower}}`, args: `{"x": " ÄB "}`, want: `äb`},
		{name: "default of two values", src: `{{default 1 2 3}}`, wantErr: "default takes a fallback and a value, got 2 values"},
		{name: "join of no list", src: `{{join "," .x}}`, args: `{"x": {}}`, wantErr: "join takes a separator and a list, got a string and an object"},
		{name: "join of an absent list", src: `{{join "," .x}}`, wantErr: "its argument is missing"},
		{name: "join of an empty list", src: `{{join "," .x}}`, args: `{"x": []}`, want: ``},
		{name: "join of an empty text", src: `{{join "," .x}}{{.x | join "-"}}`, args: `{"x": ""}`, want: ``},
		{name: "join of a text", src: `{{join "" .x}}`, args: `{"x": "ab"}`, wantErr: "join takes a separator and a list, got a string and a string"},
		{name: "join of null", src: `{{join "," .x}}`, args: `{"x": ["a", null]}`, wantErr: "item 1 of the list is null"},
		{name: "join with objects", src: `{{join " " .x}}`, args: `{"x": [{"a": 1}, [2]]}`, want: `{"a":1} [2]`},
		{name: "join with a large separator", src: `{{join .s .x}}`, args: `{"s": "` + strings.Repeat("s", 1<<20) + `", "x": [1` + strings.Repeat(",1", 20) + `]}`, wantErr: "the text is larger than 10485760 bytes"},

		{name: "printf verbs", src: `{{printf "%s|%q|%v|%d|%5d|%x|%X|%t|%%|%.2f|%e" .s .s .n .n .n .s .n .b .n .n}}`, args: `{"s": "a", "n": 10, "b": true}`, want: `a|"a"|10|10|   10|61|A|true|%|10.00|1.000000e+01`},
		{name: "printf of numbers by text", src: `{{printf "%s %v %s" .a .b .c}}`, args: `{"a": 1000000.5, "b": 1.5e300, "c": [1]}`, want: `1000000.5 1.5e+300 [1]`},
		{name: "printf keeps long digits", src: `{{printf "%d %.0f %.3f" .a .a .b}}`, args: `{"a": 123456789012345678901, "b": 123456789012345678901.125}`, want: `123456789012345678901 123456789012345678901 123456789012345678901.125`},
		{name: "printf of a large int as a float", src: `{{printf "%.0f" .a}}`, args: `{"a": 9007199254740993}`, want: `9007199254740993`},
		{name: "printf of a tiny number", src: `{{printf "%f" .a}}`, args: `{"a": 1e-999999}`, want: `0.000000`},
		{name: "printf of a huge number", src: `{{printf "%f" .a}}`, args: `{"a": 1e999999}`, wantErr: "printf: the number is too large"},
		{name: "printf of a fraction as a whole number", src: `{{printf "%d" .a}}`, args: `{"a": 1.5}`, wantErr: "%d of printf takes a whole number, got one with a fraction or an exponent"},
		{name: "printf of a string as a number", src: `{{printf "%d" .a}}`, args: `{"a": "x"}`, wantErr: "%d of printf takes a number, got a string"},
		{name: "printf of a number as a boolean", src: `{{printf "%t" .a}}`, args: `{"a": 1}`, wantErr: "%t of printf takes a boolean, got a number"},
		{name: "printf with too few values", src: `{{printf "%s %s" .a}}`, args: `{"a": 1}`, wantErr: `printf "%s %s" takes 2 values, got 1`},
		{name: "printf with a star", src: `{{printf "%*d" .a .a}}`, args: `{"a": 1}`, wantErr: `printf "%*d": %* is not supported here; the verbs are v s q d b o x X c e E f F g G t`},
		{name: "printf with an index", src: `{{printf "%[1]s%[1]s" .a}}`, args: `{"a": "x"}`, wantErr: `%[ is not supported here`},
		{name: "printf with a wide width", src: `{{printf "%01001d" .a}}`, args: `{"a": 1}`, wantErr: `the width is above 1000`},
		{name: "printf with a wide precision", src: `{{printf "%.99999999999999999999f" .a}}`, args: `{"a": 1}`, wantErr: `the width is above 1000`},
		{name: "printf that ends early", src: `{{printf "%5"}}`, wantErr: `printf "%5" ends within a verb`},
		{name: "printf with a format that is no string", src: `{{printf .a}}`, args: `{"a": 1}`, wantErr: "the format of printf must be a string, got a number"},
		{name: "printf with an argument that holds a verb", src: `{{printf "%s" .a}}`, args: `{"a": "100%!d"}`, want: "100%!d"},

		{name: "eq of several", src: `{{eq .a 1 2 "x"}} {{eq .a 1 2}}`, args: `{"a": "x"}`, want: "true false"},
		{name: "eq of one", src: `{{eq .a}}`, args: `{"a": "x"}`, wantErr: "eq needs two values"},
		{name: "eq of numbers in other forms", src: `{{eq .a 5}} {{eq .a 5.0}} {{eq .b .c}} {{eq .b 0.1}}`, args: `{"a": 5e0, "b": 0.10, "c": 1e-1}`, want: "true true true true"},
		{name: "eq of long numbers", src: `{{eq .a .b}} {{eq .a .c}}`, args: `{"a": 12345678901234567890, "b": 12345678901234567891, "c": 1234567890123456789e1}`, want: "false true"},
		{name: "eq of kinds", src: `{{eq .a .b}} {{eq .b .c}} {{eq .c .d}} {{eq .d .absent}} {{eq .l .a}}`, args: `{"a": "1", "b": 1, "c": true, "d": null, "l": []}`, want: "false false false true false"},
		{name: "eq of two lists", src: `{{eq .l .l}}`, args: `{"l": []}`, wantErr: `two values of the kind "a list" cannot be compared`},
		{name: "ne", src: `{{ne .a 1}} {{ne .a 2}}`, args: `{"a": 1}`, want: "false true"},
		{name: "order of strings", src: `{{lt "a" .a}} {{le .a "b"}} {{gt .a "b"}} {{ge .a "b"}}`, args: `{"a": "b"}`, want: "true true false true"},
		{name: "order of fractions", src: `{{lt .a .b}} {{gt .b 0.1}}`, args: `{"a": 0.1, "b": 0.1000000000000000055511151231257827}`, want: "true true"},
		{name: "a number too long to compute with", src: `{{gt .a 1}}`, args: `{"a": 1` + strings.Repeat("0", 1000) + `1}`, wantErr: "cannot order a number and a number"},
		{name: "text of printf compares as a number", src: `{{eq (printf "%.1f" .a) 1.5}}`, args: `{"a": 1.52}`, want: "true"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tmpl, err := ParseText("m", tt.src, Options{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := tmpl.Render(t.Context(), decode(t, tt.args))
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("got %.100q, error %v, want %s", got, err, tt.wantErr)
				}
				return
			}
			if err != nil || got != tt.want {
				t.Errorf("got  %q, %v\nwant %q", got, err, tt.want)
			}
		})
	}
}

// TestArgumentsOfGo checks the Go types that arguments may have.
func TestArgumentsOfGo(t *testing.T) {
	type point struct {
		X int `json:"x"`
	}
	tests := []struct {
		name string
		arg  any
		want string
	}{
		{"int", 3, "3"}, {"uint64", uint64(1<<64 - 1), "18446744073709551615"}, {"whole float", 3.0, "3"}, {"float32", float32(0.5), "0.5"},
		{"raw JSON", json.RawMessage(`{"a": 1.50}`), `{"a":1.5}`}, {"broken raw JSON", json.RawMessage(`{`), `null`},
		{"struct", point{1}, `{"x":1}`}, {"strings", []string{"a"}, `["a"]`},
		{"a number that is none", json.Number(`1,"b":2`), `"1,\"b\":2"`}, {"an empty number", json.Number(""), `""`},
		{"a channel", make(chan int), "null"}, {"not UTF-8", "a\xffb", `"a\ufffdb"`},
	}
	tmpl, err := ParseJSON("m", `{{.x}}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tmpl.Render(t.Context(), map[string]any{"x": tt.arg})
			if err != nil || string(got) != tt.want {
				t.Errorf("got %s, %v, want %s", got, err, tt.want)
			}
		})
	}
}

// TestNumbersKeepTheirValue checks that a number in any notation is rendered as the same number.
func TestNumbersKeepTheirValue(t *testing.T) {
	tmpl, err := ParseJSON("m", `{{.x}}`)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		in := rapid.StringMatching(`-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?`).Draw(rt, "number")
		out, err := tmpl.Render(t.Context(), map[string]any{"x": json.Number(in)})
		if err != nil {
			rt.Fatal(err)
		}
		want, _ := jsontext.Number(in)
		if got, ok := jsontext.Number(string(out)); !ok || got.Cmp(want) != 0 {
			rt.Fatalf("%s became %s", in, out)
		}
	})
}
