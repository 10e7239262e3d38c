package jsontext_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"toolctl.dev/toolctl/internal/jsontext"
)

func TestMarshal(t *testing.T) {
	got, err := jsontext.Marshal(map[string]any{"a": "<b> & \u2028"})
	if want := `{"a":"<b> & \u2028"}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
	if got := string(jsontext.Quote("a\"<\n")); got != `"a\"<\n"` {
		t.Errorf("got %s", got)
	}
	b := bytes.NewBufferString("kept")
	if err := jsontext.Write(b, func() {}); err == nil || b.String() != "kept" {
		t.Errorf("after an error: %q, %v", b, err)
	}
}

func TestSkip(t *testing.T) {
	for _, c := range []struct{ text, value string }{
		{`"a\"b",1`, `"a\"b"`},
		{`"\\"]`, `"\\"`},
		{`"open\"`, `"open\"`},
		{`"open\`, `"open\`},
		{`12}`, `12`},
		{`true ,`, `true`},
		{`{"a}":[1,"]"]},2`, `{"a}":[1,"]"]}`},
		{`[1,{}`, `[1,{}`},
		{`-1.5e3`, `-1.5e3`},
		{`}`, ``},
		{``, ``},
	} {
		if got := c.text[:jsontext.SkipValue(c.text, 0)]; got != c.value {
			t.Errorf("%s: value %s, want %s", c.text, got, c.value)
		}
		if strings.HasPrefix(c.text, `"`) {
			if got := c.text[:jsontext.SkipString(c.text, 0)]; got != c.value {
				t.Errorf("%s: string %s, want %s", c.text, got, c.value)
			}
		}
	}
}

// FuzzSkipValue compares with encoding/json.
func FuzzSkipValue(f *testing.F) {
	for _, seed := range []string{`{"a":[1,"\"]"]} x`, `"`, `[[`, `1,`, `{"a":"\u0022"}]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		text = bytes.TrimLeft(text, jsontext.Space)
		end := jsontext.SkipValue(text, 0)
		if end < 0 || end > len(text) {
			t.Fatalf("%q: %d", text, end)
		}
		if json.Valid(text) && string(bytes.TrimRight(text, jsontext.Space)) != string(text[:end]) {
			t.Fatalf("%q: the value ends at %d", text, end)
		}
	})
}
