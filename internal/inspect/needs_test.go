package inspect

import (
	"testing"

	"pgregory.net/rapid"

	"toolctl.dev/toolctl/internal/redact"
)

// A text that an expression finds has what the rule needs, in whatever case.
func TestNeedsOfRules(t *testing.T) {
	for _, r := range rules {
		text := rapid.StringMatching(r.re.String())
		rapid.Check(t, func(t *rapid.T) {
			if s := text.Draw(t, "text"); !redact.HasAny(redact.Fold(s), r.needs) {
				t.Fatalf("%s: %q has none of %q", r.name, s, r.needs)
			}
		})
	}
	if s := "\u017fend and \u212aeep"; redact.Fold(s) != "send and keep" {
		t.Errorf("got %q", redact.Fold(s))
	}
}
