package agent

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestLabeled(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 500) + "1" + strings.Repeat("}", 500)
	tests := []struct{ name, raw, want string }{
		{"object", `{"city": "Oslo", "days": [{"celsius": 4}, {"celsius": -1.50}]}`, "city: Oslo\ndays[0].celsius: 4\ndays[1].celsius: -1.50"},
		{"array", `[1, "two", null, true]`, "[0]: 1\n[1]: two\n[2]: null\n[3]: true"},
		{"digits and order", `{"z": 12345678901234567890, "a": 1e400}`, "z: 12345678901234567890\na: 1e400"},
		{"empty ones", `{"a": {}, "b": [ ], "c": ""}`, "a: {}\nb: []\nc: "},
		{"keys that are no words", `{"a.b": {"c d": 1, "": 2}}`, `"a.b"."c d": 1` + "\n" + `"a.b"."": 2`},
		{"lines in a value", `{"a": "x\nb: 2"}`, `a: "x\nb: 2"`},
		{"lines in a key", `{"a\nb": 1}`, `"a\nb": 1`},
		{"a scalar", `"text"`, `"text"`},
		{"no JSON", `{"a":`, `{"a":`},
		{"nothing", ``, ``},
		{"empty object", ` { } `, `{}`},
		{"deep", deep, strings.Repeat(".a", 101)[1:] + ": " + strings.Repeat(`{"a":`, 399) + "1" + strings.Repeat("}", 399)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := labeled(json.RawMessage(tt.raw)); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// FuzzLabeled checks that every value has its own line, whatever it contains.
func FuzzLabeled(f *testing.F) {
	for _, s := range []string{`{"a":[1,{"b":"c"}]}`, `[[],{}]`, `{"":"\n"}`, `"x"`, `{`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if len(raw) > 1<<14 {
			return
		}
		got := labeled(json.RawMessage(raw))
		if !json.Valid([]byte(raw)) {
			return
		}
		for line := range strings.SplitSeq(got, "\n") {
			if trimmed := strings.TrimSpace(raw); trimmed != "" && (trimmed[0] == '{' || trimmed[0] == '[') && len(got) > 2 && !strings.Contains(line, ": ") && line != "{}" && line != "[]" {
				t.Errorf("a line without a label: %q of %q", line, raw)
			}
		}
	})
}
