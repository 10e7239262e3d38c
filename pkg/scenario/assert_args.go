package scenario

import (
	"cmp"
	"encoding/json"
	"strings"

	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/params"
)

// wantedArgs are required arguments.
type wantedArgs struct {
	ExpectedArgs *params.Object `json:"expected_args"`
	Args         *params.Object `json:"args"`
}

func (w *wantedArgs) args() map[string]any {
	return *cmp.Or(w.ExpectedArgs, w.Args, &params.Object{})
}

// anyOf requires one fitting call of the tool. what describes such a call.
func (s *scope) anyOf(tool, what string, fits func(*Call) bool) (expected, got string) {
	var seen []string
	for _, c := range s.calls(func(c *Call) bool { return c.is(tool) }) {
		if fits(c) {
			return "", ""
		}
		seen = append(seen, string(c.Args))
	}
	return "a call of " + tool + what, orNone(seen)
}

func orNone(seen []string) string {
	if len(seen) == 0 {
		return "no call of it"
	}
	return strings.Join(seen, "; ")
}

// toolCallArgs requires one call of the tool with fitting arguments.
type toolCallArgs struct {
	toolName   `need:"tool_name"`
	wantedArgs `need:"expected_args or args_match"`
	ArgsMatch  params.Expressions `json:"args_match" need:"expected_args or args_match"`
}

func (q *toolCallArgs) check(s *scope) (expected, got string) {
	var conditions []string
	if len(q.args()) > 0 {
		conditions = append(conditions, show(q.args()))
	}
	for _, name := range sortedKeys(q.ArgsMatch) {
		conditions = append(conditions, name+" matching "+show(q.ArgsMatch[name].String()))
	}
	what := ""
	if len(conditions) > 0 {
		what = " with " + strings.Join(conditions, " and ")
	}
	return s.anyOf(q.name(), what, func(c *Call) bool {
		return len(compare(q.args(), c.args())) == 0 && unmatched(q.ArgsMatch, c.args()) == ""
	})
}

// unmatched returns the first argument that does not match its expression; "" if all match.
func unmatched(expressions params.Expressions, args any) string {
	object, _ := args.(map[string]any)
	for _, name := range sortedKeys(expressions) {
		if value, ok := object[name]; !ok || !expressions[name].MatchString(text(value)) {
			return name
		}
	}
	return ""
}

// toolArgs requires one call of the tool whose arguments are equal as texts.
type toolArgs struct {
	toolName   `need:"tool_name"`
	wantedArgs `need:"expected_args"`
}

func (q *toolArgs) check(s *scope) (expected, got string) {
	return s.anyOf(q.name(), " with "+show(q.args()), func(c *Call) bool { return readsSame(q.args(), c.args(), false) })
}

// readsSame compares the members of an object with arguments as texts. With nulls, null
// matches any value.
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

// toolCallsWithArgs requires that every call of the tool fits, or every call if no tool is named.
type toolCallsWithArgs struct {
	toolName
	RequiredArgs *params.Object `json:"required_args"`
	wantedArgs
	callFit
}

func (q *toolCallsWithArgs) check(s *scope) (expected, got string) {
	want := *cmp.Or(q.ExpectedArgs, q.RequiredArgs, q.Args, &params.Object{})
	name := cmp.Or(q.name(), "any tool")
	calls := s.calls(q.chosen)
	for _, c := range calls {
		if !readsSame(want, c.args(), true) {
			return "every call of " + name + " with " + show(want), string(c.Args)
		}
		if misses := q.misses(c); misses != "" {
			return "every call of " + name + " " + misses, shown(c)
		}
	}
	if q.name() != "" && len(calls) == 0 {
		return "a call of " + name, "no call of it"
	}
	return "", ""
}

// shown returns a call and its result for a message.
func shown(c *Call) string {
	return c.name() + " " + string(c.Args) + ": " + clip.Runes(c.resultText(), maxShown)
}

// toolsNotCalledWithArgs requires that no call of the tool has one of the values.
type toolsNotCalledWithArgs struct {
	toolName      `need:"tool_name"`
	ExcludedArgs  params.Object `json:"excluded_args" need:"excluded_args or forbidden_args"`
	ForbiddenArgs params.Object `json:"forbidden_args" need:"excluded_args or forbidden_args"`
}

func (q *toolsNotCalledWithArgs) check(s *scope) (expected, got string) {
	forbidden := map[string][]any{}
	for name, value := range q.ExcludedArgs {
		forbidden[name] = []any{value}
	}
	if len(q.ExcludedArgs) == 0 {
		for name, value := range q.ForbiddenArgs {
			list, ok := value.([]any)
			if !ok {
				list = []any{value}
			}
			forbidden[name] = list
		}
	}
	for _, c := range s.calls(q.chosen) {
		args, _ := c.args().(map[string]any)
		for _, name := range sortedKeys(forbidden) {
			have, ok := args[name]
			for _, value := range forbidden[name] {
				if ok && text(have) == text(value) {
					return "no call of " + q.name() + " with " + name + " " + show(value), string(c.Args)
				}
			}
		}
	}
	return "", ""
}

// callFit holds conditions for a call and its result.
type callFit struct {
	ArgsMatch      params.Expressions `json:"args_match"`
	ResultIncludes []string           `json:"result_includes"`
	ResultMatches  params.Expression  `json:"result_matches"`
	NoError        bool               `json:"no_error"`
}

// misses returns the condition that a call does not meet; "" if it meets all.
func (f *callFit) misses(c *Call) string {
	if f.NoError && c.failed() {
		return "without an error"
	}
	result := strings.ToLower(c.resultText())
	for _, part := range f.ResultIncludes {
		if !strings.Contains(result, strings.ToLower(part)) {
			return "with " + show(part) + " in its result"
		}
	}
	if f.ResultMatches.Regexp != nil && !f.ResultMatches.MatchString(c.resultText()) {
		return "with a result that matches " + show(f.ResultMatches.String())
	}
	if name := unmatched(f.ArgsMatch, c.args()); name != "" {
		return "with " + name + " matching " + show(f.ArgsMatch[name].String())
	}
	return ""
}

// failed reports whether the call failed.
func (c *Call) failed() bool { return c.Result.Error != nil || c.Result.Status == "failed" }

// hasArgs reports whether the call has any argument.
func (c *Call) hasArgs() bool {
	args, ok := c.args().(map[string]any)
	return !ok && len(c.raw) > 0 || len(args) > 0
}

// resultText returns the result as text: text parts unchanged, other parts by their type, any
// other content as JSON, and for a call that failed the error.
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
