package textcheck

import (
	"encoding/json"
	"testing"

	"toolctl.dev/toolctl/internal/params"
)

func TestLimits(t *testing.T) {
	for given, want := range map[string]string{
		`{"max":0,"max_tokens":5}`: "",
		`{"max":0}`:                "the parameter max is missing",
		`{"max":-1}`:               `parameter "max": expected a whole number above 0, got -1`,
		`{"max":1.5}`:              `parameter "max": expected a whole number, got 1.5`,
	} {
		if _, got := params.Read(json.RawMessage(given), false, New("max_length", "max_length", nil, false)); got != want {
			t.Errorf("%s: got %q, want %q", given, got, want)
		}
	}
}

func TestSentences(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "  ": 0, "...": 1, "One": 1, "One. Two!": 2, "Wait... what?! Yes": 3, "3.5 litres": 2,
	} {
		if got := Sentences(text); got != want {
			t.Errorf("Sentences(%q) = %d, want %d", text, got, want)
		}
	}
}

func TestFound(t *testing.T) {
	words := []string{"free", "cash back", "C++", "café", "🎉", "笨蛋", ".net"}
	for _, c := range []struct {
		text  string
		whole bool
		want  string
	}{
		{"Feel FREE to ask", true, "free"},
		{"freedom", true, ""},
		{"freedom", false, "free"},
		{"Cash back today", true, "cash back"},
		{"nothing", false, ""},
		{"learn c++ today", true, "C++"},
		{"objc++", true, ""},
		{"un CAFÉ, merci", true, "café"},
		{"decafé", true, ""},
		{"a party 🎉 now", true, "🎉"},
		{"你是笨蛋吗", true, "笨蛋"},
		{"asp.net is", true, ".net"},
		{"asp.networks", true, ""},
	} {
		if got := Found(words, c.text, c.whole); got != c.want {
			t.Errorf("Found(%q, %v) = %q, want %q", c.text, c.whole, got, c.want)
		}
	}
}

func TestJSON(t *testing.T) {
	for _, c := range []struct {
		text             string
		wrapped, extract bool
		want             string
	}{
		{" {\"a\":1} ", false, false, `{"a":1}`},
		{"Here:\n```json\n[1]\n```\n", true, false, "[1]"},
		{"It is {\"a\": 1}, as asked", false, true, `{"a": 1}`},
		{"no JSON", true, true, "no JSON"},
	} {
		if got := JSON(c.text, c.wrapped, c.extract); got != c.want {
			t.Errorf("JSON(%q) = %q, want %q", c.text, got, c.want)
		}
	}
}
