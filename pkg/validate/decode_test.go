package validate_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toolctl.dev/toolctl/pkg/validate"
)

func TestDecode(t *testing.T) {
	tests := []struct {
		name string
		text string
		want any
	}{
		{"null", ` null `, nil},
		{"booleans", `[true,false]`, []any{true, false}},
		{"an integer above 2^53 keeps every digit", `9007199254740993123456789`, json.Number("9007199254740993123456789")},
		{"a fraction is kept as written", `-1.50e+02`, json.Number("-1.50e+02")},
		{"the largest double", `1.7976931348623157e308`, json.Number("1.7976931348623157e308")},
		{"escapes", `"a\"\\\/\b\f\n\r\t\u00e9\u20AC"`, "a\"\\/\b\f\n\r\té€"},
		{"a surrogate pair", `"\ud83d\ude00"`, "😀"},
		{"a lone surrogate becomes U+FFFD", `"x\ud83dy"`, "x\ufffdy"},
		{"two high surrogates", `"\ud83d\ud83d\ude00"`, "\ufffd😀"},
		{"text that is not ASCII", `{"größe":"日本"}`, map[string]any{"größe": "日本"}},
		{"empty containers", `{"a":[],"b":{}}`, map[string]any{"a": []any{}, "b": map[string]any{}}},
		{"a member named with nothing", `{"":1}`, map[string]any{"": json.Number("1")}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := validate.Decode([]byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	const tooFar = "number beyond the range of a double: at most 1.8e308, and exponents from -1000 to 308"
	tests := []struct {
		name, text, want string
	}{
		{"nothing", ``, `line 1, column 1: expected a value, got the end of the text`},
		{"text after the value", "{}\n x", `line 2, column 2: text after the value`},
		{"a second value", `1 2`, `column 3: text after the value`},
		{"a member given twice", `{"a":1,"b":2,"a":3}`, `column 14: member "a" is given twice`},
		{"a member given twice through an escape", `{"a":1,"\u0061":2}`, `column 8: member "a" is given twice`},
		{"invalid UTF-8", "\"\xff\"", `the text is not UTF-8`},
		{"a control character", "\"a\nb\"", `control character '\n' in a string`},
		{"a control character after an escape", "\"\\t\x01\"", `control character '\x01' in a string`},
		{"an unknown escape", `"\x"`, `invalid escape`},
		{"a short escape", `"\u12"`, `invalid escape`},
		{"an open string", `"abc`, `string without its closing quote`},
		{"an open string after an escape", `"abc\n`, `string without its closing quote`},
		{"an open array", `[1`, `expected ',' or ']'`},
		{"an open object", `{"a":1`, `expected ',' or '}'`},
		{"a trailing comma", `[1,]`, `expected a value, got ']'`},
		{"a key without quotes", `{a:1}`, `expected a member name in double quotes`},
		{"no colon", `{"a" 1}`, `expected ':'`},
		{"a word that is none", `nul`, `expected a value, got 'n'`},
		{"NaN", `NaN`, `expected a value, got 'N'`},
		{"a leading zero", `01`, `not a JSON number`},
		{"a leading plus", `+1`, `expected a value, got '+'`},
		{"a bare minus", `-`, `not a JSON number`},
		{"no digit after the point", `1.`, `not a JSON number`},
		{"no digit in the exponent", `1e`, `not a JSON number`},
		{"a number beyond doubles", `1e309`, tooFar},
		{"a number of 400 MB", `1e1000000000`, tooFar},
		{"a tiny number of 400 MB", `1e-1000000000`, tooFar},
		{"an exponent beyond int", `1e99999999999999999999`, tooFar},
		{"a long number", strings.Repeat("0.1", 1) + strings.Repeat("1", 1000), `number of more than 1000 characters`},
		{"an array nested too deep", strings.Repeat("[", 1_000_000), `nested deeper than 256 levels`},
		{"an object nested too deep", strings.Repeat(`{"a":`, 100_000), `nested deeper than 256 levels`},
		{"too many values", "[" + strings.Repeat("1,", 500_000) + "1]", `more than 500000 values`},
		{"too many bytes", `"` + strings.Repeat("a", 16<<20) + `"`, `is too large: at most 16777216`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			v, err := validate.Decode([]byte(test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, %v; want an error with %q", v, err, test.want)
			}
		})
	}
}

// FuzzDecode holds Decode to encoding/json: what it takes, encoding/json reads the
// same, and it refuses what encoding/json refuses.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"a":[1,-2.5e3,"x\u00e9\ud83d\ude00",null,true]}`, `"\ud800"`, `[[[]]]`, `{"a":1,"a":2}`, `1e400`, ` 0 `} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := validate.Decode(raw)
		if err != nil {
			return
		}
		if !json.Valid(raw) {
			t.Fatalf("took %q, which is not valid JSON", raw)
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		var want any
		if err := d.Decode(&want); err != nil {
			t.Fatalf("took %q, which encoding/json refuses: %v", raw, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}
