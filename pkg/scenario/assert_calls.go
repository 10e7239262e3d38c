package scenario

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
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

// is reports whether a call is of the tool: by the name that was asked for, or the
// one that was found.
func (c *Call) is(tool string) bool {
	short := strings.TrimPrefix(tool, v1.MCPPrefix)
	return tool == c.Tool || short == c.name() || tool == c.Result.Namespace+"/"+c.name()
}

func listed(names []string) string {
	if len(names) == 0 {
		return "no calls"
	}
	return strings.Join(names, ", ")
}

func toolNames(calls []*Call) []string {
	names := make([]string, len(calls))
	for i, c := range calls {
		names[i] = c.name()
	}
	return names
}

// toolsCalled counts calls that went well, as PromptKit does.
func toolsCalled(q *params, s *scope) (expected, got string) {
	low, high := 1, -1
	if q.MinCalls != nil {
		low = *q.MinCalls
	}
	if q.MaxCalls != nil {
		high = *q.MaxCalls
	}
	var bad []string
	for _, tool := range q.tools() {
		n, failed, why := 0, 0, ""
		for _, c := range allCalls(s.turns) {
			switch {
			case !c.is(tool), q.RequireArgs && !c.hasArgs():
			case c.Result.Error == nil, q.Type == "tools_called_session", q.IgnoreValidation && c.Result.Error.Type == v1.ArgsInvalid:
				n++
			default:
				if failed++; why == "" {
					why = c.Result.Error.Type + ": " + c.Result.Error.Message
				}
			}
		}
		if n < low || high >= 0 && n > high {
			text := fmt.Sprintf("%s %s", tool, times(n))
			if failed > 0 {
				text += fmt.Sprintf(", and %s without success (%s)", times(failed), why)
			}
			bad = append(bad, text)
		}
	}
	if bad == nil {
		return "", ""
	}
	return fmt.Sprintf("each of %s called %s", strings.Join(q.tools(), ", "), bounds(&low, positive(high))), strings.Join(bad, "; ")
}

// whole is a number that was found to be whole.
func whole(n *float64) *int {
	if n == nil {
		return nil
	}
	i := int(*n)
	return &i
}

func positive(n int) *int {
	if n < 0 {
		return nil
	}
	return &n
}

func times(n int) string { return clip.Count(n, "time") }

func bounds(low, high *int) string {
	switch {
	case low != nil && high != nil && *low == *high:
		return times(*low)
	case low != nil && high != nil:
		return fmt.Sprintf("%d to %s", *low, times(*high))
	case high != nil:
		return "at most " + times(*high)
	case low != nil:
		return "at least " + times(*low)
	}
	return "any number of times"
}

func toolsNotCalled(q *params, s *scope) (expected, got string) {
	var called []string
	for _, c := range allCalls(s.turns) {
		if slices.ContainsFunc(q.tools(), c.is) {
			called = append(called, c.name())
		}
	}
	if called == nil {
		return "", ""
	}
	return "no call of " + strings.Join(q.tools(), ", "), "calls of " + listed(called)
}

// within judges a count by the parameters count, min and max.
func (q *params) within(n int) (expected string) {
	low, high := whole(q.Min), whole(q.Max)
	if q.Count != nil {
		low, high = q.Count, q.Count
	}
	if low != nil && n < *low || high != nil && n > *high {
		return bounds(low, high)
	}
	return ""
}

func toolCallCount(q *params, s *scope) (expected, got string) {
	n, what := 0, "all tools"
	if q.tool() != "" {
		what = q.tool()
	}
	for _, c := range allCalls(s.turns) {
		if q.tool() == "" || c.is(q.tool()) {
			n++
		}
	}
	if expected = q.within(n); expected == "" {
		return "", ""
	}
	return fmt.Sprintf("calls of %s: %s", what, expected), times(n)
}

// toolCallArgs asks for one call of the tool whose arguments fit.
func toolCallArgs(q *params, s *scope) (expected, got string) {
	patterns := q.ArgsMatch
	want, _ := decode(q.args()).(map[string]any)
	var seen []string
	for _, c := range allCalls(s.turns) {
		if !c.is(q.tool()) {
			continue
		}
		args := c.args()
		if len(compare(want, args)) == 0 && argsMatch(patterns, args) {
			return "", ""
		}
		seen = append(seen, string(c.Args))
	}
	expected = "a call of " + q.tool()
	if len(want) > 0 {
		expected += " with " + show(want)
	}
	for i, name := range sortedKeys(patterns) {
		word := " and "
		if i == 0 && len(want) == 0 {
			word = " with "
		}
		expected += word + name + " matching " + show(patterns[name])
	}
	if seen == nil {
		return expected, "no call of it"
	}
	return expected, strings.Join(seen, "; ")
}

func argsMatch(patterns map[string]string, args any) bool {
	object, ok := args.(map[string]any)
	if !ok {
		return len(patterns) == 0
	}
	for name, pattern := range patterns {
		re, err := regexp.Compile(pattern)
		value, has := object[name]
		if err != nil || !has || !re.MatchString(text(value)) {
			return false
		}
	}
	return true
}

// toolCallOrder asks for calls in an order, with any others between them.
func toolCallOrder(q *params, s *scope) (expected, got string) {
	sequence := q.Sequence
	if len(sequence) == 0 {
		sequence = q.tools()
	}
	calls := allCalls(s.turns)
	found := 0
	for _, c := range calls {
		if found < len(sequence) && c.is(sequence[found]) {
			found++
		}
	}
	if found == len(sequence) {
		return "", ""
	}
	return strings.Join(sequence, ", then "), fmt.Sprintf("%s; %s is missing from place %d on", listed(toolNames(calls)), sequence[found], found+1)
}

func noToolErrors(q *params, s *scope) (expected, got string) {
	var bad []string
	for _, c := range allCalls(s.turns) {
		if len(q.tools()) > 0 && !slices.ContainsFunc(q.tools(), c.is) {
			continue
		}
		if err := c.Result.Error; err != nil {
			bad = append(bad, c.name()+": "+err.Type+": "+err.Message)
		} else if c.Result.Status == v1.StatusFailed {
			bad = append(bad, c.name()+": failed")
		}
	}
	if bad == nil {
		return "", ""
	}
	return "no call that fails", strings.Join(bad, "; ")
}

// policyRefusals counts the calls that a policy refused; without a count it asks
// for at least one.
func policyRefusals(q *params, s *scope) (expected, got string) {
	if q.Min == nil && q.Max == nil && q.Count == nil {
		one := 1.0
		asked := *q
		asked.Min = &one
		q = &asked
	}
	n := 0
	var other []string
	for _, c := range allCalls(s.own) {
		d := c.Result.Policy
		if d == nil || d.Decision != v1.DecisionDeny {
			continue
		}
		if len(q.tools()) > 0 && !slices.ContainsFunc(q.tools(), c.is) || q.Rule != "" && q.Rule != d.Rule || q.Policy != "" && q.Policy != d.Policy {
			other = append(other, c.name()+" by rule "+d.Rule+" of policy "+d.Policy)
			continue
		}
		n++
	}
	if expected = q.within(n); expected == "" {
		return "", ""
	}
	got = times(n)
	if other != nil {
		got += "; other refusals: " + strings.Join(other, ", ")
	}
	expected = "a refusal " + expected
	if len(q.tools()) > 0 {
		expected += " of " + strings.Join(q.tools(), ", ")
	}
	if q.Rule != "" {
		expected += " by rule " + q.Rule
	}
	if q.Policy != "" {
		expected += " of policy " + q.Policy
	}
	return expected, got
}
