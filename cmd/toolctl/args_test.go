package main

import (
	"encoding/json"
	"strings"
	"testing"

	"toolctl.dev/toolctl/pkg/action"
)

func TestCallArgs(t *testing.T) {
	tests := []struct {
		name, stdin, want, fail string
		flags                   []string
	}{
		{name: "none", want: `{}`},
		{name: "text", flags: []string{"a=1", "b=x=y", "c="}, want: `{"a":"1","b":"x=y","c":""}`},
		{name: "JSON", flags: []string{"a:=1", "b:=[1,2]", "c:=null", `d:="x"`}, want: `{"a":1,"b":[1,2],"c":null,"d":"x"}`},
		{name: "every digit", flags: []string{"a:=12345678901234567890.10"}, want: `{"a":12345678901234567890.10}`},
		{name: "pairs win over objects", flags: []string{"a=1", `{"a":2,"b":3}`, `{"b":4}`}, want: `{"a":"1","b":4}`},
		{name: "stdin", stdin: `{"a":1}`, flags: []string{"-", "b=2"}, want: `{"a":1,"b":"2"}`},
		{name: "a key with a colon", flags: []string{"a:b=1", "c:d:=2"}, want: `{"a:b":"1","c:d":2}`},
		{name: "neither", flags: []string{"a"}, fail: `argument "a": expected key=value, key:=JSON or a JSON object`},
		{name: "no UTF-8", flags: []string{"a=\xff"}, fail: `argument "a=\xff" is not valid UTF-8`},
		{name: "no key", flags: []string{"=a"}, fail: `argument "=a": expected key=value`},
		{name: "no key before JSON", flags: []string{":=1"}, fail: `argument ":=1": expected key=value`},
		{name: "twice", flags: []string{"a=1", "a:=2"}, fail: `argument "a" is given twice`},
		{name: "no JSON", flags: []string{"a:=x"}, fail: `argument "a": "x" is not JSON: `},
		{name: "no object", stdin: `[1]`, flags: []string{"-"}, fail: `stdin: arguments must be a JSON object, got array`},
		{name: "a key twice in an object", flags: []string{`{"a":1,"a":2}`}, fail: `member "a" is given twice`},
		{name: "a number out of range", flags: []string{`{"a":1e999}`}, fail: `arguments are not usable: at line 1, column 6: number beyond the range of a double`},
		{name: "such a value", flags: []string{`a:=1e999`}, fail: `argument "a": "1e999" is not usable: at line 1, column 1: number beyond the range of a double`},
		{name: "more than an object", flags: []string{`{"a":1}{"b":2}`}, fail: `arguments are not JSON: `},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := &app{in: strings.NewReader(tt.stdin)}
			got, _, err := (&action.Arguments{Flags: tt.flags}).Object(a.stored(t.Context()))
			switch {
			case tt.fail != "":
				if err == nil || !strings.Contains(err.Error(), tt.fail) || exitCode(err) != exitUsage {
					t.Errorf("got %v with code %d, want %s", err, exitCode(err), tt.fail)
				}
			case err != nil || string(got) != tt.want:
				t.Errorf("got %s, %v, want %s", got, err, tt.want)
			}
		})
	}
}

// FuzzParseArgs checks three properties of argument flags: the result is a JSON object, a value written as text keeps
// that text, and an error is wrong usage.
func FuzzParseArgs(f *testing.F) {
	for _, s := range []string{"a=1", "a:=1", `{"a":1}`, "-", " {", "=", ":=", "a:=", "a=\xff", "a:=1e999999999", `a:={"b":1,"b":2}`, "a:=[[[[", "\x00=\x00", `{"a":1} x`} {
		f.Add(s, "b=2")
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		a := &app{in: strings.NewReader(`{"from":"stdin"}`)}
		raw, _, err := (&action.Arguments{Flags: []string{first, second}}).Object(a.stored(t.Context()))
		if err != nil {
			if exitCode(err) != exitUsage {
				t.Fatalf("%q %q: %v has code %d", first, second, err, exitCode(err))
			}
			return
		}
		var args map[string]json.RawMessage
		if err := json.Unmarshal(raw, &args); err != nil {
			t.Fatalf("%q %q: read as %s: %v", first, second, raw, err)
		}
		key, value, ok := strings.Cut(first, "=")
		if strings.HasPrefix(strings.TrimSpace(first), "{") || !ok || strings.HasSuffix(key, ":") {
			return // the value is not a text
		}
		want, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if got := args[key]; string(got) != string(want) {
			t.Errorf("%q: got %s, want %s", first, got, want)
		}
	})
}
