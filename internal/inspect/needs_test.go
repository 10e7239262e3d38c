package inspect

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"toolctl.dev/toolctl/internal/redact"
)

// A text that an expression finds has what the rule needs, in whatever case.
func TestNeedsOfRules(t *testing.T) {
	for _, r := range rules {
		text := rapid.StringMatching(r.re().String())
		rapid.Check(t, func(t *rapid.T) {
			if s := text.Draw(t, "text"); !redact.HasAny(redact.Fold(s), r.needs) {
				t.Fatalf("%s: %q has none of %q", r.name, s, r.needs)
			} else if schema, err := json.Marshal(map[string]string{"description": s}); err != nil || unsuspicious(schema) {
				t.Fatalf("%s: %q is passed over in a schema: %v", r.name, s, err)
			}
		})
	}
	if s := "\u017fend and \u212aeep"; redact.Fold(s) != "send and keep" {
		t.Errorf("got %q", redact.Fold(s))
	}
	for _, r := range "\x01\x7f\u0085\u00ad\u200b\u202e\ufe0f\U000e0041" {
		raw, escaped := `{"title":"a`+string(r)+`"}`, `{"title":"a`+strings.Trim(strconv.QuoteToASCII(string(r)), `"`)+`"}`
		if unsuspicious([]byte(raw)) || unsuspicious([]byte(escaped)) {
			t.Errorf("%q is passed over in a schema", r)
		}
	}
	if !unsuspicious([]byte("{\"type\": \"object\",\n \"title\": \"Looks up a city\"}")) {
		t.Error("a schema of plain words is looked into")
	}
}
