package scenario

import (
	"fmt"
	"regexp"
	"strings"

	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/textcheck"
)

// said is what the model said, one text a reply; for a turn without a model, which
// PromptKit does not have, the results of its calls.
func (s *scope) said() []string {
	var all []string
	for _, t := range s.turns {
		all = append(all, t.said...)
		if len(t.said) > 0 || s.player.promptKit {
			continue
		}
		for i := range t.Calls {
			if c := &t.Calls[i]; !c.failed() && c.resultText() != "" {
				all = append(all, c.resultText())
			}
		}
	}
	return all
}

// answer is the last thing that the model said.
func (s *scope) answer() string {
	said := s.said()
	if len(said) == 0 {
		return ""
	}
	return said[len(said)-1]
}

func quoted(texts []string) string {
	all := make([]string, len(texts))
	for i, t := range texts {
		all[i] = show(t)
	}
	return strings.Join(all, " and ")
}

// contentIncludes looks in all that was said; in a manifest of PromptKit's in the last
// answer.
func contentIncludes(q *params, s *scope) (expected, got string) {
	all := strings.Join(s.said(), "\n")
	if s.player.promptKit {
		all = s.answer()
	}
	if gone := textcheck.Missing(q.texts(), all); gone != nil {
		return "a text with " + quoted(gone), show(all)
	}
	return "", ""
}

func contentIncludesAny(q *params, s *scope) (expected, got string) {
	all := strings.Join(s.said(), "\n")
	if len(textcheck.Missing(q.texts(), all)) < len(q.texts()) {
		return "", ""
	}
	return "a text with " + strings.ReplaceAll(quoted(q.texts()), " and ", " or "), show(all)
}

func contentExcludes(q *params, s *scope) (expected, got string) {
	words := q.MatchMode == textcheck.WordBoundary || q.MatchMode == "" && q.Type == "banned_words"
	for _, said := range s.said() {
		if found := textcheck.Found(q.texts(), said, words); found != "" {
			return "no text with " + show(found), show(said)
		}
	}
	return "", ""
}

func contentMatches(q *params, s *scope) (expected, got string) {
	want := q.ExpectMatch == nil || *q.ExpectMatch
	if regexp.MustCompile(q.Pattern).MatchString(s.answer()) == want { // read before
		return "", ""
	}
	if want {
		return "a match of " + show(q.Pattern), show(s.answer())
	}
	return "no match of " + show(q.Pattern), show(s.answer())
}

func (q *params) minLength() *float64 { return firstOf(q.Min, q.MinCharacters, q.MinChars) }

func (q *params) maxLength() *float64 { return firstOf(q.Max, q.MaxCharacters, q.MaxChars) }

func needLength(name string, n *float64) string {
	switch {
	case n == nil:
		return "the parameter " + name + " is missing"
	case *n <= 0 || *n != float64(int(*n)):
		return fmt.Sprintf("parameter %q: expected a whole number above 0, got %v", name, *n)
	}
	return ""
}

func minLength(q *params, s *scope) (expected, got string) {
	if n := len(s.answer()); float64(n) < *q.minLength() {
		return fmt.Sprintf("at least %v bytes", *q.minLength()), fmt.Sprintf("%d: %s", n, show(s.answer()))
	}
	return "", ""
}

// needMaxLength asks for a bound in bytes, or for one in tokens alone.
func needMaxLength(q *params) string {
	if q.maxLength() == nil && q.MaxTokens != nil && *q.MaxTokens > 0 {
		return ""
	}
	return needLength("max", q.maxLength())
}

func maxLength(q *params, s *scope) (expected, got string) {
	n := len(s.answer())
	if most := q.maxLength(); most != nil && float64(n) > *most {
		return fmt.Sprintf("at most %v bytes", *most), fmt.Sprintf("%d: %s", n, show(s.answer()))
	}
	if t := textcheck.Tokens(s.answer()); q.MaxTokens != nil && *q.MaxTokens > 0 && t > *q.MaxTokens {
		return "at most " + clip.Count(*q.MaxTokens, "token"), fmt.Sprintf("about %d", t)
	}
	return "", ""
}

func sentenceCount(q *params, s *scope) (expected, got string) {
	if n := textcheck.Sentences(s.answer()); float64(n) > *q.maxSentences() {
		return fmt.Sprintf("at most %v sentences", *q.maxSentences()), fmt.Sprintf("%d: %s", n, show(s.answer()))
	}
	return "", ""
}

func (q *params) maxSentences() *float64 { return firstOf(q.Max, q.MaxSentences) }

func fieldPresence(q *params, s *scope) (expected, got string) {
	if gone := textcheck.Missing(q.fields(), s.answer()); gone != nil {
		return "a text with " + quoted(gone), show(s.answer())
	}
	return "", ""
}

func (q *params) fields() []string {
	return append(q.Fields[:len(q.Fields):len(q.Fields)], q.RequiredFields...)
}
