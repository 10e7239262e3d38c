package scenario

import (
	"encoding/json"
	"regexp"
	"strings"

	"toolctl.dev/toolctl/internal/clip"
)

// toolArgs asks for one call of the tool whose arguments read the same.
func toolArgs(q *params, s *scope) (expected, got string) {
	want, _ := decode(q.args()).(map[string]any)
	var seen []string
	for _, c := range allCalls(s.turns) {
		if !c.is(q.tool()) {
			continue
		}
		if readsSame(want, c.args(), false) {
			return "", ""
		}
		seen = append(seen, string(c.Args))
	}
	return "a call of " + q.tool() + " with " + show(want), orNone(seen)
}

func orNone(seen []string) string {
	if seen == nil {
		return "no call of it"
	}
	return strings.Join(seen, "; ")
}

// readsSame compares the members of an object with arguments as texts. With nulls a
// null stands for any value.
func readsSame(want map[string]any, args any, nulls bool) bool {
	object, _ := args.(map[string]any)
	for name, value := range want {
		have, ok := object[name]
		if !ok || text(have) != text(value) && (!nulls || value != nil) {
			return false
		}
	}
	return true
}

// toolCallsWithArgs asks that every call of the tool, of any tool when none is named, fits.
func toolCallsWithArgs(q *params, s *scope) (expected, got string) {
	want, _ := decode(q.args()).(map[string]any)
	name := first(q.tool(), "any tool")
	fits := step{ResultIncludes: q.ResultIncludes, ResultMatches: q.ResultMatches, ArgsMatch: q.ArgsMatch, NoError: q.NoError}
	calls := 0
	for _, c := range allCalls(s.turns) {
		if q.tool() != "" && !c.is(q.tool()) {
			continue
		}
		calls++
		if !readsSame(want, c.args(), true) {
			return "every call of " + name + " with " + show(want), string(c.Args)
		}
		if misses := fits.misses(c); misses != "" {
			return "every call of " + name + " " + misses, shown(c)
		}
	}
	if q.tool() != "" && calls == 0 {
		return "a call of " + name, "no call of it"
	}
	return "", ""
}

// shown is a call and what came of it, for a message.
func shown(c *Call) string {
	return c.name() + " " + string(c.Args) + ": " + clip.Runes(c.resultText(), maxShown)
}

// toolsNotCalledWithArgs asks that no call of the tool has one of the values.
func toolsNotCalledWithArgs(q *params, s *scope) (expected, got string) {
	forbidden := map[string][]any{}
	for name, raw := range q.ForbiddenArgs {
		if list, ok := decode(raw).([]any); ok {
			forbidden[name] = list
		} else {
			forbidden[name] = []any{decode(raw)}
		}
	}
	if len(q.ExcludedArgs) > 0 {
		clear(forbidden)
	}
	for name, raw := range q.ExcludedArgs {
		forbidden[name] = []any{decode(raw)}
	}
	for _, c := range allCalls(s.turns) {
		args, _ := c.args().(map[string]any)
		if !c.is(q.tool()) {
			continue
		}
		for _, name := range sortedKeys(forbidden) {
			have, ok := args[name]
			for _, value := range forbidden[name] {
				if ok && text(have) == text(value) {
					return "no call of " + q.tool() + " with " + name + " " + show(value), string(c.Args)
				}
			}
		}
	}
	return "", ""
}

// misses says what a call does not have that the step asks for; "" when it fits.
func (f *step) misses(c *Call) string {
	if f.NoError && c.failed() {
		return "without an error"
	}
	result := strings.ToLower(c.resultText())
	for _, part := range f.ResultIncludes {
		if !strings.Contains(result, strings.ToLower(part)) {
			return "with " + show(part) + " in its result"
		}
	}
	if f.ResultMatches != "" && !regexp.MustCompile(f.ResultMatches).MatchString(c.resultText()) { // read before
		return "with a result that matches " + show(f.ResultMatches)
	}
	args, _ := c.args().(map[string]any)
	for _, name := range sortedKeys(f.ArgsMatch) {
		if value, ok := args[name]; !ok || !regexp.MustCompile(f.ArgsMatch[name]).MatchString(text(value)) {
			return "with " + name + " matching " + show(f.ArgsMatch[name])
		}
	}
	return ""
}

// failed reports whether the call did not end well.
func (c *Call) failed() bool { return c.Result.Error != nil || c.Result.Status == "failed" }

// hasArgs reports whether any argument was given.
func (c *Call) hasArgs() bool {
	args, ok := c.args().(map[string]any)
	return !ok && len(c.raw) > 0 || len(args) > 0
}

// resultText is the result as a model reads it: texts as they are, all other parts by
// their type, other results as JSON, the error of a call that failed.
func (c *Call) resultText() string {
	var b strings.Builder
	for _, p := range c.Result.Parts {
		if p.Type == "text" {
			b.WriteString(p.Text)
		} else {
			b.WriteString("[" + p.Type + ":" + p.MIMEType + "]")
		}
	}
	if len(c.Result.Content) > 0 && (b.Len() == 0 || !isNull(c.Result.Content)) {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(text(decode(c.Result.Content)))
	}
	if b.Len() == 0 && c.Result.Error != nil {
		return c.Result.Error.Message
	}
	return b.String()
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }
