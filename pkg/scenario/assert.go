package scenario

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/params"
	"toolctl.dev/toolctl/internal/textcheck"
	"toolctl.dev/toolctl/pkg/validate"
)

// Unjudged is an assertion that was not judged, with the reason.
type Unjudged struct {
	// Turn is the number of the turn, from 1; 0 if the assertion is about the whole run.
	Turn   int       `json:"turn,omitempty"`
	Type   string    `json:"type"`
	Reason string    `json:"reason"`
	Field  string    `json:"field"`
	Source v1.Source `json:"source,omitzero"`
}

// scope is the part of a run that an assertion checks.
type scope struct {
	ctx    context.Context
	player *player
	turns  []Turn
	// own are the turns of the assertion itself, without the earlier ones in turns.
	own []Turn
	// unjudged, if set, is the reason why the assertion cannot be judged.
	unjudged string
}

// assertion is one type of assertion. Its fields are its parameters, with PromptKit's names,
// for [params.Read] to fill. Where PromptKit has two names for one thing, both are read.
type assertion interface {
	// check returns how a run fails the assertion; "" and "" if it passes.
	check(*scope) (expected, got string)
}

// assertionType finds the type of an assertion; unjudged is the reason why it cannot be judged.
func (p *player) assertionType(name string) (t v1.AssertionType, unjudged string) {
	t, ok := v1.FindAssertionType(name)
	if ok {
		return t, t.Unjudged
	}
	unjudged = "toolctl does not know it"
	unjudged += v1.DidYouMean(name, v1.AssertionNames())
	return t, unjudged
}

// checkAssertions reports wrong parameters of assertions, and enters assertions that cannot be
// judged. In a PromptKit manifest, those with wrong parameters cannot be judged.
func (p *player) checkAssertions(turn int, field string, list []v1.Assertion) {
	for i := range list {
		a, at := unwrapped(&list[i]), v1.Pointer(field, strconv.Itoa(i))
		t, unjudged := p.assertionType(a.Type)
		if unjudged != "" {
			p.unjudged(turn, at, a.Type, unjudged)
			continue
		}
		_, unknown, message := p.readAssertion(&t, a)
		switch {
		case message == "":
			for _, key := range unknown {
				p.warn(v1.Pointer(at, "params", key), "%q has no parameter %q: ignored", a.Type, key)
			}
		case p.promptKit:
			p.unjudged(turn, at, a.Type, message)
		default:
			p.invalid(at+"/params", message)
		}
	}
}

// Check returns the violations in the parameters of a scenario's assertions. It reports no violations for a PromptKit
// manifest, whose wrong assertions are listed as not judged in the report.
func Check(s *v1.Scenario) []v1.Violation {
	p := &player{runner: &Runner{schemas: validate.NewCache(validate.Options{})}, spec: &s.Spec, res: newResult(s), promptKit: s.FromPromptKit()}
	for i := range p.spec.Turns {
		p.checkAssertions(i+1, v1.Pointer("/spec/turns", strconv.Itoa(i), "assertions"), p.spec.Turns[i].Assertions)
	}
	p.checkAssertions(0, "/spec/assertions", p.spec.Assertions)
	var all []v1.Violation
	for _, f := range p.res.Failures {
		all = append(all, v1.Violation{Path: f.Field, Message: strings.TrimPrefix(f.Message, v1.FieldPath(f.Field)+": "), Source: f.Source})
	}
	return all
}

// unjudged adds an assertion to those that are not judged, once.
func (p *player) unjudged(turn int, at, name, reason string) {
	if slices.ContainsFunc(p.res.Unjudged, func(u Unjudged) bool { return u.Field == at }) {
		return
	}
	p.res.Unjudged = append(p.res.Unjudged, Unjudged{Turn: turn, Type: name, Reason: reason, Field: at, Source: p.source(at)})
	p.warn(at+"/type", "assertion %q is not judged: %s", name, reason)
}

// pass adds a list of assertions, with one reason, to those that are not judged.
func (p *player) pass(field string, list []v1.Assertion, reason string) {
	for i := range list {
		p.unjudged(p.turn, v1.Pointer(field, strconv.Itoa(i)), list[i].Type, reason)
	}
}

// assert judges assertions on the turns from an index on. In a PromptKit manifest they also
// see the earlier turns, as in PromptKit, but their conditions do not.
func (p *player) assert(ctx context.Context, field string, list []v1.Assertion, from int) {
	turns := p.res.Turns[from:]
	seen := turns
	if p.promptKit {
		seen = p.res.Turns
	}
	for i := range list {
		a, at := unwrapped(&list[i]), v1.Pointer(field, strconv.Itoa(i))
		t, unjudged := p.assertionType(a.Type)
		if unjudged != "" {
			continue // already reported before the run
		}
		rule, _, message := p.readAssertion(&t, a)
		if message != "" {
			continue
		}
		if unmet := whenUnmet(a.When, allCalls(turns)); unmet != "" {
			p.unjudged(p.turn, at, a.Type, "when: "+unmet)
			continue
		}
		s := &scope{ctx: ctx, player: p, turns: seen, own: turns}
		expected, got := rule.check(s)
		if s.unjudged != "" {
			p.unjudged(p.turn, at, a.Type, s.unjudged)
			continue
		}
		p.res.Judged++
		if expected != "" {
			var said struct{ Message string } // PromptKit has the message among the parameters
			_ = json.Unmarshal(a.Params, &said)
			p.fail(Failure{What: a.Type, Expected: expected, Got: got, Message: cmp.Or(a.Message, said.Message), Field: at})
		}
	}
}

// whenUnmet returns why the condition of an assertion does not hold; "" if it holds.
func whenUnmet(w *v1.AssertionWhen, calls []*Call) string {
	if w == nil {
		return ""
	}
	fits := func(string) bool { return true }
	if w.ToolCalledPattern != "" {
		re, err := regexp.Compile(w.ToolCalledPattern)
		if err != nil {
			return fmt.Sprintf("%q is not a regular expression (RE2)", w.ToolCalledPattern)
		}
		fits = re.MatchString
	}
	switch {
	case w.ToolCalled != "" && !slices.ContainsFunc(calls, func(c *Call) bool { return c.is(w.ToolCalled) }):
		return fmt.Sprintf("tool %q was not called", w.ToolCalled)
	case w.ToolCalledPattern != "" && !slices.ContainsFunc(calls, func(c *Call) bool { return fits(c.name()) || fits(c.Tool) }):
		return fmt.Sprintf("no tool that matches %q was called", w.ToolCalledPattern)
	case w.AnyToolCalled && len(calls) == 0:
		return "no tool was called"
	case len(calls) < w.MinToolCalls:
		return fmt.Sprintf("tools were called %s, and %d calls are needed", times(len(calls)), w.MinToolCalls)
	}
	return ""
}

// readAssertion reads the parameters of an assertion. message says what is wrong with them, and
// unknown are parameters that PromptKit ignores.
func (p *player) readAssertion(t *v1.AssertionType, a *v1.Assertion) (rule assertion, unknown []string, message string) {
	if text := textcheck.New(t.Name, a.Type, p.runner.schemas, p.promptKit); text != nil {
		unknown, message = params.Read(a.Params, p.promptKit, text)
		return &textAssertion{text, t.Name}, unknown, message
	}
	rule = assertions[t.Name]()
	unknown, message = params.Read(a.Params, p.promptKit, rule)
	return rule, unknown, message
}

// decode decodes a value that the reader of the manifest has accepted.
func decode(raw json.RawMessage) any {
	doc, err := validate.Decode(raw)
	if err != nil {
		return nil
	}
	return doc
}
