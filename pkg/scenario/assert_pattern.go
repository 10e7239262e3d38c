package scenario

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/params"
	"toolctl.dev/toolctl/internal/textcheck"
)

// toolCallChain requires calls of the tools of its steps in order. The first call of a step's
// tool after the step before must fit.
type toolCallChain struct {
	Steps []step `json:"steps" need:"steps"`
	Chain []step `json:"chain" need:"steps"`
}

// step is one step of a chain of calls: a tool, and conditions for its call.
type step struct {
	Tool string `json:"tool"`
	callFit
}

// UnmarshalJSON reads the name of a tool or an object.
func (s *step) UnmarshalJSON(raw []byte) error {
	if bytes.HasPrefix(raw, []byte(`"`)) {
		return json.Unmarshal(raw, &s.Tool)
	}
	type plain step
	if err := json.Unmarshal(raw, (*plain)(s)); err != nil {
		return fmt.Errorf("step of %q: %w", s.Tool, err)
	}
	return nil
}

func (q *toolCallChain) steps() []step {
	if len(q.Steps) > 0 {
		return q.Steps
	}
	return q.Chain
}

// Invalid implements [params.Checker].
func (q *toolCallChain) Invalid() string {
	for i, s := range q.steps() {
		if s.Tool == "" {
			return fmt.Sprintf("the parameter steps[%d].tool is missing", i)
		}
	}
	return ""
}

func (q *toolCallChain) check(s *scope) (expected, got string) {
	steps, done := q.steps(), 0
	calls := allCalls(s.turns)
	for _, c := range calls {
		if done == len(steps) || !c.is(steps[done].Tool) {
			continue
		}
		if misses := steps[done].misses(c); misses != "" {
			return fmt.Sprintf("step %d: a call of %s %s", done+1, steps[done].Tool, misses), shown(c)
		}
		done++
	}
	if done == len(steps) {
		return "", ""
	}
	names := make([]string, len(steps))
	for i := range steps {
		names[i] = steps[i].Tool
	}
	return strings.Join(names, ", then "), fmt.Sprintf("%s; step %d (%s) is missing", listed(toolNamesOf(calls)), done+1, names[done])
}

// resultCount requires a number of calls whose results fit.
type resultCount struct {
	toolName
	Occurrence *params.Whole `json:"occurrence"` // default: 1
}

func (q *resultCount) count(s *scope, what string, fits func(string) bool) (expected, got string) {
	need, n := int(*cmp.Or(q.Occurrence, new(params.Whole(1)))), 0
	var seen []string
	for _, c := range s.calls(q.chosen) {
		if fits(c.resultText()) {
			n++
		} else {
			seen = append(seen, clip.Runes(c.resultText(), maxShown))
		}
	}
	if n >= need {
		return "", ""
	}
	if need > 1 {
		what = fmt.Sprintf("%d results with ", need) + what
	} else {
		what = "a result with " + what
	}
	if q.name() != "" {
		what += " of " + q.name()
	}
	return what, fmt.Sprintf("%d; %s", n, orNone(seen))
}

type toolResultIncludes struct {
	resultCount
	textcheck.Patterns
}

func (q *toolResultIncludes) check(s *scope) (expected, got string) {
	return q.count(s, textcheck.Quoted(q.Patterns.Patterns, " and "), func(result string) bool {
		return textcheck.Missing(q.Patterns.Patterns, result) == nil
	})
}

type toolResultMatches struct {
	resultCount
	Pattern params.Expression `json:"pattern" need:"pattern"`
}

func (q *toolResultMatches) check(s *scope) (expected, got string) {
	return q.count(s, "a match of "+show(q.Pattern.String()), q.Pattern.MatchString)
}

// toolResultHasMedia requires a part of a type, such as image.
type toolResultHasMedia struct {
	toolName
	MediaType string `json:"media_type" need:"media_type"`
}

func (q *toolResultHasMedia) check(s *scope) (expected, got string) {
	return q.hasPart(s, q.MediaType, func(kind, _ string) bool { return strings.EqualFold(kind, q.MediaType) })
}

// toolResultMediaType requires a part with a MIME type.
type toolResultMediaType struct {
	toolName
	MIMEType  string `json:"mime_type" need:"mime_type"`
	MediaType string `json:"media_type" need:"mime_type"`
}

func (q *toolResultMediaType) check(s *scope) (expected, got string) {
	want := cmp.Or(q.MIMEType, q.MediaType)
	return q.hasPart(s, want, func(kind, mime string) bool { return kind != "text" && strings.EqualFold(mime, want) })
}

func (t *toolName) hasPart(s *scope, want string, fits func(kind, mime string) bool) (expected, got string) {
	var seen []string
	for _, c := range s.calls(t.chosen) {
		for _, p := range c.Result.Parts {
			if fits(p.Type, p.MIMEType) {
				return "", ""
			}
			seen = append(seen, strings.TrimSuffix(p.Type+" "+p.MIMEType, " "))
		}
	}
	return "a part " + want + " in a result", cmp.Or(strings.Join(seen, ", "), "no part")
}
