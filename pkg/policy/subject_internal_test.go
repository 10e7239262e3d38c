package policy

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	v1 "toolctl.dev/toolctl/api/v1"
)

// What is decided without the names is what the names decide.
func TestNamedAgreesWithNames(t *testing.T) {
	word := rapid.StringMatching(`[am]([_.-]?[abcp]){0,4}(x{55,60})?`)
	rapid.Check(t, func(t *rapid.T) {
		s := Subject{Namespace: word.Draw(t, "namespace"), Name: word.Draw(t, "name")}
		if rapid.Bool().Draw(t, "served") {
			s.Server, s.Remote = word.Draw(t, "server"), word.Draw(t, "remote")
		}
		pattern := word.Draw(t, "pattern")
		if all := s.Names(); rapid.Bool().Draw(t, "near") {
			pattern = rapid.SampledFrom(all).Draw(t, "of")
		}
		if rapid.Bool().Draw(t, "open") {
			pattern = pattern[:rapid.IntRange(0, len(pattern)).Draw(t, "cut")] + "*"
		}
		matches := func(n string) bool { return v1.MatchPattern(pattern, n) }
		if got, want := s.named(pattern), slices.ContainsFunc(s.names(), matches); got != want {
			t.Fatalf("named(%q) = %v for %q", pattern, got, s.names())
		}
		if slices.ContainsFunc(s.aliases(), matches) && !s.mayAlias(pattern) {
			t.Fatalf("mayAlias(%q) is false for %q", pattern, s.aliases())
		}
	})
}
