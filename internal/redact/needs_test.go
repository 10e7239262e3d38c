package redact

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

// TestNeedsOfSecrets checks that a text in the format of a secret contains one of the required texts of the format,
// also within JSON.
func TestNeedsOfSecrets(t *testing.T) {
	for _, f := range secretForms {
		text := rapid.StringMatching(f.form().String())
		rapid.Check(t, func(t *rapid.T) {
			s := text.Draw(t, "text")
			raw, err := json.Marshal(map[string]string{"a": s})
			if err != nil {
				t.Fatal(err)
			}
			if !HasAny(Fold(s), f.needs) || !MayHoldSecret(string(raw)) {
				t.Fatalf("%s: %q has none of %q", f.kind, s, f.needs)
			}
		})
	}
	if MayHoldSecret(`{"description":"The weather of a city","port":8080}`) {
		t.Error("every text may hold a secret")
	}
}
