package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/params"
)

func allCalls(turns []Turn) []*Call {
	var all []*Call
	for i := range turns {
		for j := range turns[i].Calls {
			all = append(all, &turns[i].Calls[j])
		}
	}
	return all
}

// calls returns the chosen calls of the scope.
func (s *scope) calls(chosen func(*Call) bool) []*Call {
	return slices.DeleteFunc(allCalls(s.turns), func(c *Call) bool { return !chosen(c) })
}

// is reports whether a call is one of the tool. It compares the name in the call and the name of the tool that was
// found.
func (c *Call) is(tool string) bool {
	short := strings.TrimPrefix(tool, v1.MCPPrefix)
	return tool == c.Tool || short == c.name() || tool == c.Result.Namespace+"/"+c.name()
}

// toolName chooses the calls of a tool; without a name, those of all tools.
type toolName struct {
	Tool     string `json:"tool"`
	ToolName string `json:"tool_name"`
}

func (t *toolName) name() string { return cmp.Or(t.Tool, t.ToolName) }

func (t *toolName) chosen(c *Call) bool { return t.name() == "" || c.is(t.name()) }

// toolNames choose the calls of some tools; without names, those of all tools.
type toolNames struct {
	Tools     []string `json:"tools"`
	ToolNames []string `json:"tool_names"`
}

func (t *toolNames) names() []string {
	if len(t.Tools) > 0 {
		return t.Tools
	}
	return t.ToolNames
}

func (t *toolNames) chosen(c *Call) bool {
	return len(t.names()) == 0 || slices.ContainsFunc(t.names(), c.is)
}

// someTools are one tool or several.
type someTools struct {
	toolNames
	ToolName string `json:"tool_name"`
}

func (t *someTools) names() []string {
	if names := t.toolNames.names(); len(names) > 0 || t.ToolName == "" {
		return names
	}
	return []string{t.ToolName}
}

func listed(names []string) string {
	if len(names) == 0 {
		return "no calls"
	}
	return strings.Join(names, ", ")
}

func toolNamesOf(calls []*Call) []string {
	names := make([]string, len(calls))
	for i, c := range calls {
		names[i] = c.name()
	}
	return names
}

func times(n int) string { return clip.Count(n, "time") }

// countBounds are bounds for a number of calls.
type countBounds struct {
	Min   *params.Whole `json:"min"`
	Max   *params.Whole `json:"max"`
	Count *params.Whole `json:"count"`
}

// outside returns the expected count; "" if n is within the bounds.
func (b countBounds) outside(n int) (expected string) {
	low, high := cmp.Or(b.Count, b.Min), cmp.Or(b.Count, b.Max)
	switch {
	case (low == nil || n >= int(*low)) && (high == nil || n <= int(*high)):
		return ""
	case low != nil && high != nil && *low == *high:
		return times(int(*low))
	case low != nil && high != nil:
		return fmt.Sprintf("%d to %s", *low, times(int(*high)))
	case high != nil:
		return "at most " + times(int(*high))
	}
	return "at least " + times(int(*low))
}

// toolsCalled counts successful calls, as PromptKit does.
type toolsCalled struct {
	someTools        `need:"tools"`
	MinCalls         *params.Whole `json:"min_calls"`
	MaxCalls         *params.Whole `json:"max_calls"`
	IgnoreValidation bool          `json:"ignore_validation"`
	RequireArgs      bool          `json:"require_args"`
}

func (q *toolsCalled) check(s *scope) (expected, got string) {
	within := countBounds{Min: q.MinCalls, Max: q.MaxCalls}
	if q.MaxCalls != nil && *q.MaxCalls < 0 {
		within.Max = nil
	}
	return s.called(q.names(), within, q.RequireArgs, func(err *v1.ResultError) bool {
		return err != nil && (!q.IgnoreValidation || err.Type != v1.ArgsInvalid)
	})
}

// toolsCalledSession counts failed calls too.
type toolsCalledSession struct {
	someTools `need:"tools"`
	MinCalls  *params.Whole `json:"min_calls"`
}

func (q *toolsCalledSession) check(s *scope) (expected, got string) {
	return s.called(q.names(), countBounds{Min: q.MinCalls}, false, func(*v1.ResultError) bool { return false })
}

// called checks whether the number of successful calls of each tool is within the bounds.
func (s *scope) called(tools []string, within countBounds, withArgs bool, failed func(*v1.ResultError) bool) (expected, got string) {
	within.Min = cmp.Or(within.Min, new(params.Whole(1)))
	var bad []string
	for _, tool := range tools {
		n, others, why := 0, 0, ""
		for _, c := range allCalls(s.turns) {
			switch err := c.Result.Error; {
			case !c.is(tool), withArgs && !c.hasArgs():
			case !failed(err):
				n++
			default:
				others++
				why = cmp.Or(why, err.Type+": "+err.Message)
			}
		}
		if outside := within.outside(n); outside != "" {
			expected = fmt.Sprintf("each of %s called %s", strings.Join(tools, ", "), outside)
			text := fmt.Sprintf("%s %s", tool, times(n))
			if others > 0 {
				text += fmt.Sprintf(", and %s without success (%s)", times(others), why)
			}
			bad = append(bad, text)
		}
	}
	return expected, strings.Join(bad, "; ")
}

type toolsNotCalled struct {
	someTools `need:"tools"`
}

func (q *toolsNotCalled) check(s *scope) (expected, got string) {
	called := s.calls(func(c *Call) bool { return slices.ContainsFunc(q.names(), c.is) })
	if len(called) == 0 {
		return "", ""
	}
	return "no call of " + strings.Join(q.names(), ", "), "calls of " + listed(toolNamesOf(called))
}

type toolCallCount struct {
	toolName
	countBounds `need:"min, max or count"`
}

func (q *toolCallCount) check(s *scope) (expected, got string) {
	n := len(s.calls(q.chosen))
	if expected = q.outside(n); expected == "" {
		return "", ""
	}
	return fmt.Sprintf("calls of %s: %s", cmp.Or(q.name(), "all tools"), expected), times(n)
}

// toolCallOrder requires calls in an order. Other calls may come between them.
type toolCallOrder struct {
	Sequence  []string `json:"sequence" need:"sequence"`
	toolNames `need:"sequence"`
}

func (q *toolCallOrder) check(s *scope) (expected, got string) {
	sequence := q.Sequence
	if len(sequence) == 0 {
		sequence = q.names()
	}
	calls := allCalls(s.turns)
	found := inOrder(sequence, calls)
	if found == len(sequence) {
		return "", ""
	}
	return strings.Join(sequence, ", then "), fmt.Sprintf("%s; %s is missing from position %d", listed(toolNamesOf(calls)), sequence[found], found+1)
}

// inOrder returns how many tools of a sequence were called in its order.
func inOrder(sequence []string, calls []*Call) (found int) {
	for _, c := range calls {
		if found < len(sequence) && c.is(sequence[found]) {
			found++
		}
	}
	return found
}

// toolAntiPattern requires that no sequence was called, with or without other calls between.
type toolAntiPattern struct {
	Patterns []struct {
		Sequence []string `json:"sequence"`
		Message  string   `json:"message"`
	} `json:"patterns" need:"patterns"`
}

// Invalid implements [params.Checker].
func (q *toolAntiPattern) Invalid() string {
	for _, p := range q.Patterns {
		if len(p.Sequence) == 0 {
			return `parameter "patterns": expected a list of {sequence: [TOOL, …], message: TEXT}`
		}
	}
	return ""
}

func (q *toolAntiPattern) check(s *scope) (expected, got string) {
	calls := allCalls(s.turns)
	for _, p := range q.Patterns {
		if inOrder(p.Sequence, calls) < len(p.Sequence) {
			continue
		}
		expected = "never " + strings.Join(p.Sequence, ", then ")
		if p.Message != "" {
			expected += " (" + p.Message + ")"
		}
		return expected, listed(toolNamesOf(calls))
	}
	return "", ""
}

// toolNoRepeat requires that no tool is called too often in a row.
type toolNoRepeat struct {
	toolNames
	MaxRepeats *params.Whole `json:"max_repeats"`
}

func (q *toolNoRepeat) check(s *scope) (expected, got string) {
	limit := int(*cmp.Or(q.MaxRepeats, new(params.Whole(1))))
	calls, row := allCalls(s.turns), 0
	for i, c := range calls {
		if row++; i > 0 && c.name() != calls[i-1].name() {
			row = 1
		}
		if row > limit && q.chosen(c) {
			return fmt.Sprintf("no tool called more than %s in a row", times(limit)), listed(toolNamesOf(calls))
		}
	}
	return "", ""
}

// toolEfficiency limits the number of calls and failures.
type toolEfficiency struct {
	MaxCalls     *params.Whole `json:"max_calls" need:"max_calls, max_errors or max_error_rate"`
	MaxErrors    *params.Whole `json:"max_errors" need:"max_calls, max_errors or max_error_rate"`
	MaxErrorRate *float64      `json:"max_error_rate" need:"max_calls, max_errors or max_error_rate"`
}

func (q *toolEfficiency) check(s *scope) (expected, got string) {
	calls, failed := len(allCalls(s.turns)), len(s.calls((*Call).failed))
	got = fmt.Sprintf("%s, %d of them failed", times(calls), failed)
	switch {
	case q.MaxCalls != nil && calls > int(*q.MaxCalls):
		return fmt.Sprintf("at most %s", times(int(*q.MaxCalls))), got
	case q.MaxErrors != nil && failed > int(*q.MaxErrors):
		return fmt.Sprintf("at most %d failed calls", *q.MaxErrors), got
	case q.MaxErrorRate != nil && calls > 0 && float64(failed)/float64(calls) > *q.MaxErrorRate:
		return fmt.Sprintf("at most %g of the calls failed", *q.MaxErrorRate), got
	}
	return "", ""
}

type noToolErrors struct{ toolNames }

func (q *noToolErrors) check(s *scope) (expected, got string) {
	var bad []string
	for _, c := range s.calls(q.chosen) {
		if err := c.Result.Error; err != nil {
			bad = append(bad, c.name()+": "+err.Type+": "+err.Message)
		} else if c.failed() {
			bad = append(bad, c.name()+": failed")
		}
	}
	if bad == nil {
		return "", ""
	}
	return "no call that fails", strings.Join(bad, "; ")
}

// policyRefusals counts the calls that a policy refused. Without a count it requires at least
// one.
type policyRefusals struct {
	toolNames
	Rule   string `json:"rule"`
	Policy string `json:"policy"`
	countBounds
}

func (q *policyRefusals) check(s *scope) (expected, got string) {
	within := q.countBounds
	if within == (countBounds{}) {
		within.Min = new(params.Whole(1))
	}
	n := 0
	var other []string
	for _, c := range allCalls(s.own) {
		d := c.Result.Policy
		if d == nil || d.Decision != v1.DecisionDeny {
			continue
		}
		if !q.chosen(c) || q.Rule != "" && q.Rule != d.Rule || q.Policy != "" && q.Policy != d.Policy {
			other = append(other, c.name()+" by rule "+d.Rule+" of policy "+d.Policy)
			continue
		}
		n++
	}
	if expected = within.outside(n); expected == "" {
		return "", ""
	}
	got = times(n)
	if other != nil {
		got += "; other refusals: " + strings.Join(other, ", ")
	}
	expected = "a refusal " + expected
	if names := q.names(); len(names) > 0 {
		expected += " of " + strings.Join(names, ", ")
	}
	if q.Rule != "" {
		expected += " by rule " + q.Rule
	}
	if q.Policy != "" {
		expected += " of policy " + q.Policy
	}
	return expected, got
}
