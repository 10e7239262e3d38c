package scenario

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"toolctl.dev/toolctl/internal/textcheck"

	"toolctl.dev/toolctl/internal/clip"
)

// toolCallChain asks for the tools of the steps in their order; the first call of each
// that comes in turn has to fit.
func toolCallChain(q *params, s *scope) (expected, got string) {
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
	return strings.Join(names, ", then "), fmt.Sprintf("%s; step %d (%s) is missing", listed(toolNames(calls)), done+1, names[done])
}

// toolAntiPattern asks that no sequence was called, whatever came between.
func toolAntiPattern(q *params, s *scope) (expected, got string) {
	calls := allCalls(s.turns)
	for _, p := range q.Patterns {
		done := 0
		for _, c := range calls {
			if done < len(p.Sequence) && c.is(p.Sequence[done]) {
				done++
			}
		}
		if done < len(p.Sequence) {
			continue
		}
		expected = "never " + strings.Join(p.Sequence, ", then ")
		if p.Message != "" {
			expected += " (" + p.Message + ")"
		}
		return expected, listed(toolNames(calls))
	}
	return "", ""
}

// toolNoRepeat asks that no tool is called too often in a row.
func toolNoRepeat(q *params, s *scope) (expected, got string) {
	limit := 1
	if q.MaxRepeats != nil {
		limit = *q.MaxRepeats
	}
	calls, row := allCalls(s.turns), 0
	for i, c := range calls {
		if row++; i > 0 && c.name() != calls[i-1].name() {
			row = 1
		}
		if row > limit && (len(q.tools()) == 0 || slices.ContainsFunc(q.tools(), c.is)) {
			return fmt.Sprintf("no tool called more than %s in a row", times(limit)), listed(toolNames(calls))
		}
	}
	return "", ""
}

// toolEfficiency bounds calls and failures.
func toolEfficiency(q *params, s *scope) (expected, got string) {
	calls, failed := allCalls(s.turns), 0
	for _, c := range calls {
		if c.failed() {
			failed++
		}
	}
	got = fmt.Sprintf("%s, %d of them failed", times(len(calls)), failed)
	switch {
	case q.MaxCalls != nil && len(calls) > *q.MaxCalls:
		return fmt.Sprintf("at most %s", times(*q.MaxCalls)), got
	case q.MaxErrors != nil && failed > *q.MaxErrors:
		return fmt.Sprintf("at most %d failed calls", *q.MaxErrors), got
	case q.MaxErrorRate != nil && len(calls) > 0 && float64(failed)/float64(len(calls)) > *q.MaxErrorRate:
		return fmt.Sprintf("at most %g of the calls failed", *q.MaxErrorRate), got
	}
	return "", ""
}

// results counts the calls of a tool, of all when none is named, whose results fit.
func results(q *params, s *scope, what string, fits func(string) bool) (expected, got string) {
	need, n := 1, 0
	if q.Occurrence != nil {
		need = *q.Occurrence
	}
	var seen []string
	for _, c := range allCalls(s.turns) {
		if q.tool() != "" && !c.is(q.tool()) {
			continue
		}
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
	if q.tool() != "" {
		what += " of " + q.tool()
	}
	return what, fmt.Sprintf("%d; %s", n, orNone(seen))
}

func toolResultIncludes(q *params, s *scope) (expected, got string) {
	return results(q, s, quoted(q.texts()), func(result string) bool { return textcheck.Missing(q.texts(), result) == nil })
}

func toolResultMatches(q *params, s *scope) (expected, got string) {
	return results(q, s, "a match of "+show(q.Pattern), regexp.MustCompile(q.Pattern).MatchString)
}

// toolResultHasMedia asks for a part of a type, such as image.
func toolResultHasMedia(q *params, s *scope) (expected, got string) {
	return parts(q, s, q.MediaType, func(kind, _ string) bool { return strings.EqualFold(kind, q.MediaType) })
}

// toolResultMediaType asks for a part with a MIME type.
func toolResultMediaType(q *params, s *scope) (expected, got string) {
	want := first(q.MIMEType, q.MediaType)
	return parts(q, s, want, func(kind, mime string) bool { return kind != "text" && strings.EqualFold(mime, want) })
}

func parts(q *params, s *scope, want string, fits func(kind, mime string) bool) (expected, got string) {
	var seen []string
	for _, c := range allCalls(s.turns) {
		if q.tool() != "" && !c.is(q.tool()) {
			continue
		}
		for _, p := range c.Result.Parts {
			if fits(p.Type, p.MIMEType) {
				return "", ""
			}
			seen = append(seen, strings.TrimSuffix(p.Type+" "+p.MIMEType, " "))
		}
	}
	got = "no part"
	if seen != nil {
		got = strings.Join(seen, ", ")
	}
	return "a part " + want + " in a result", got
}
