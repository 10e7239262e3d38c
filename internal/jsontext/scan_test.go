package jsontext_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"toolctl.dev/toolctl/internal/jsontext"
)

var texts = []string{
	``, ` `, `""`, `"a`, `"\u00e4\ud83d\ude00\ud83d x\ude00\n\/"`, `"\u12g4"`, `"\x"`, "\"\x01\"", "\"12345678\x1f\"", "\"\x7f\xff\"", `"1234567\"89"`, `"\`, `"\u12`,
	`{}`, `{"a":1,}`, `{"a" : [ ] , "b":{"c":null}} `, `{"a"}`, `{1:2}`, `[1,2`, `[,]`, `[}`, `{]`, `tru`, `true`, `nulll`, `01`, `-`, `-0.5e+10`, `1.`, `.5`, `1e`, `--1`, `1 2`,
	strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000), strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001),
	"\"ä\u2028€😀 <&> " + strings.Repeat("x", 40) + `"`,
}

// FuzzValid compares with encoding/json.
func FuzzValid(f *testing.F) {
	for _, s := range texts {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if got, want := jsontext.Valid(text), json.Valid(text); got != want {
			t.Errorf("%.200q: %t, want %t", text, got, want)
		}
	})
}

// FuzzString compares with encoding/json what is written of a text and read of a string.
func FuzzString(f *testing.F) {
	for _, s := range texts {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var got bytes.Buffer
		jsontext.AppendString(&got, s)
		if want, err := jsontext.Marshal(s); err != nil || got.String() != string(want) {
			t.Errorf("%q becomes %s, want %s", s, got.Bytes(), want)
		}
		for _, raw := range [][]byte{got.Bytes(), []byte(s), []byte(`"` + s + `"`)} {
			var want string
			if json.Unmarshal(raw, &want) != nil || raw[0] != '"' || raw[len(raw)-1] != '"' {
				continue
			}
			if got := jsontext.Unquote(raw); got != want {
				t.Errorf("%s is read as %q, want %q", raw, got, want)
			}
		}
	})
}

// BenchmarkValid stands beside encoding/json.
func BenchmarkValid(b *testing.B) {
	row := `{"id":12345,"name":"Ada Lovelace","tags":["a","b"],"note":"` + strings.Repeat("some words ", 20) + `","ok":true},`
	text := []byte("[" + strings.Repeat(row, 300) + "null]")
	for _, c := range []struct {
		name  string
		valid func([]byte) bool
	}{{"jsontext", jsontext.Valid}, {"floor-json.Valid", json.Valid}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if !c.valid(text) {
					b.Fatal("not valid")
				}
			}
		})
	}
}
