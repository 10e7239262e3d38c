package validate

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"time"

	"github.com/dlclark/regexp2"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// JSON Schema requires ECMA-262 regular expressions. Go's own engine (RE2) matches in linear time,
// but has no lookaround, which generators such as zod use ("^(?!\\.)…" for an e-mail address). Such
// a pattern runs on regexp2 in its ECMAScript mode, which backtracks and therefore has a time
// limit.
const (
	maxPatternSize      = 10_000 // instructions of a compiled RE2 pattern
	maxBacktrackPattern = 8 << 10
	matchTimeout        = 100 * time.Millisecond // for one match
	backtrackBudget     = 250 * time.Millisecond // for all matches of one document
)

// patternSize returns the number of RE2 instructions of a pattern, or 1 for a pattern that needs
// regexp2. The error says why the pattern cannot be used.
func patternSize(pattern string) (int, error) {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		_, err = compileBacktracking(pattern, nil)
		return 1, err
	}
	size := treeSize(tree)
	if size > maxPatternSize {
		return 0, fmt.Errorf("it expands to more than %d instructions", maxPatternSize)
	}
	return size, nil
}

// treeSize returns an upper bound of the compiled size. regexp.Compile would need up to 130 MB to
// find that (a{1000}){1000} is too large.
func treeSize(re *syntax.Regexp) int {
	size := 2
	if re.Op == syntax.OpLiteral { // a character class is one instruction, whatever its size
		size += len(re.Rune)
	}
	for _, sub := range re.Sub {
		size += treeSize(sub)
	}
	if re.Op == syntax.OpRepeat {
		size *= max(re.Min, re.Max, 1)
	}
	return min(size, maxPatternSize+1) // so that nested repeats do not overflow
}

// A stopwatch limits the time of backtracking matches in one validation. It belongs to one compiled
// schema and serves one validation at a time.
type stopwatch struct {
	deadline time.Time
	late     []string // patterns that exceeded the time limit
	used     bool     // the schema has a pattern that backtracks
	sealed   bool     // the schema is compiled; later patterns come from "format": "regex" in a document
}

func (w *stopwatch) start() {
	w.deadline, w.late = time.Now().Add(backtrackBudget), w.late[:0]
}

// engine returns the regular expressions of one schema.
func (w *stopwatch) engine(pattern string) (jsonschema.Regexp, error) {
	if _, err := patternSize(pattern); err != nil {
		return nil, err
	}
	if re, err := regexp.Compile(pattern); err == nil {
		return re, nil
	}
	if !w.sealed {
		w.used = true
	}
	return compileBacktracking(pattern, w)
}

type backtracking struct {
	re     *regexp2.Regexp
	source string
	watch  *stopwatch
}

func compileBacktracking(pattern string, watch *stopwatch) (_ jsonschema.Regexp, err error) {
	defer func() { // regexp2 gets untrusted patterns here
		if p := recover(); p != nil {
			err = errors.New("it is not a valid regular expression")
		}
	}()
	if len(pattern) > maxBacktrackPattern {
		return nil, fmt.Errorf("it is longer than %d bytes", maxBacktrackPattern)
	}
	re, err := regexp2.Compile(endAnchors(pattern), regexp2.ECMAScript)
	if err != nil {
		return nil, err
	}
	re.MatchTimeout = matchTimeout
	return &backtracking{re: re, source: pattern, watch: watch}, nil
}

func (b *backtracking) String() string { return b.source }

// MatchString returns false for a match that exceeds the time limit. The stopwatch records it, so
// that the document is refused whatever false means there.
func (b *backtracking) MatchString(s string) bool {
	if b.watch == nil || time.Now().Before(b.watch.deadline) {
		ok, err := b.re.MatchString(s)
		if err == nil {
			return ok
		}
	}
	if b.watch != nil {
		b.watch.late = append(b.watch.late, b.source)
	}
	return false
}

// endAnchors replaces "$" by "\z": in regexp2, "$" also matches before a final newline, but in
// ECMA-262 (22.2.2.4) it does not.
func endAnchors(pattern string) string {
	if !strings.Contains(pattern, "$") {
		return pattern
	}
	var b strings.Builder
	class := false
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\' && i+1 < len(pattern):
			b.WriteString(pattern[i : i+2])
			i++
			continue
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '$' && !class:
			b.WriteString(`\z`)
			continue
		}
		b.WriteByte(pattern[i])
	}
	return b.String()
}
