package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/validate"
)

// Unjudged is an assertion that was not judged, and why.
type Unjudged struct {
	// Turn counts from 1; 0 when the assertion is about the whole run.
	Turn   int       `json:"turn,omitempty"`
	Type   string    `json:"type"`
	Reason string    `json:"reason"`
	Field  string    `json:"field"`
	Source v1.Source `json:"source,omitzero"`
}

// scope is what an assertion looks at.
type scope struct {
	ctx    context.Context
	player *player
	turns  []Turn
	// own are the turns that the assertion is about: turns without those before them.
	own []Turn
	// unjudged, once it is set, says why the assertion cannot be judged.
	unjudged string
}

// judgement is how one type of assertion is judged: what is wrong with its parameters,
// and what is wrong with a run; "" when nothing is.
type judgement struct {
	need  func(*params) (message string)
	check func(*params, *scope) (expected, got string)
}

// assertionType finds what is known of an assertion; unjudged says why it cannot be judged.
func (p *player) assertionType(name string) (t v1.AssertionType, unjudged string) {
	t, ok := v1.FindAssertionType(name)
	if ok {
		return t, t.Unjudged
	}
	unjudged = "toolctl does not know it"
	unjudged += v1.DidYouMean(name, v1.AssertionNames())
	return t, unjudged
}

// checkAssertions finds assertions that cannot be judged: those that need what is not
// here, and in a manifest of PromptKit's those that are wrong.
func (p *player) checkAssertions(turn int, field string, list []v1.Assertion) {
	for i := range list {
		a, at := unwrapped(&list[i]), v1.Pointer(field, strconv.Itoa(i))
		t, unjudged := p.assertionType(a.Type)
		if unjudged != "" {
			p.unjudged(turn, at, a.Type, unjudged)
			continue
		}
		q, message := readParams(&t, a, p.promptKit)
		switch {
		case message == "":
			for _, key := range q.unknown {
				p.warn(v1.Pointer(at, "params", key), "%q has no parameter %q: ignored", a.Type, key)
			}
		case p.promptKit:
			p.unjudged(turn, at, a.Type, message)
		default:
			p.invalid(at+"/params", message)
		}
	}
}

// Check finds what is wrong with the parameters of the assertions of a scenario. Those of a
// manifest of PromptKit's are not judged instead, which the report says.
func Check(s *v1.Scenario) []v1.Violation {
	p := &player{spec: &s.Spec, res: newResult(s), promptKit: s.FromPromptKit()}
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

// unjudged enters an assertion that is not judged, once.
func (p *player) unjudged(turn int, at, name, reason string) {
	if slices.ContainsFunc(p.res.Unjudged, func(u Unjudged) bool { return u.Field == at }) {
		return
	}
	p.res.Unjudged = append(p.res.Unjudged, Unjudged{Turn: turn, Type: name, Reason: reason, Field: at, Source: p.source(at)})
	p.warn(at+"/type", "assertion %q is not judged: %s", name, reason)
}

// pass enters a list of assertions that are not judged for one reason.
func (p *player) pass(field string, list []v1.Assertion, reason string) {
	for i := range list {
		p.unjudged(p.turn, v1.Pointer(field, strconv.Itoa(i)), list[i].Type, reason)
	}
}

// assert judges assertions on the turns from an index on. In a manifest of PromptKit's
// they see the turns before it too, as they do there; their conditions do not.
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
			continue // named before
		}
		q, message := readParams(&t, a, p.promptKit)
		if message != "" {
			continue
		}
		if unmet := whenUnmet(a.When, allCalls(turns)); unmet != "" {
			p.unjudged(p.turn, at, a.Type, "when: "+unmet)
			continue
		}
		s := &scope{ctx: ctx, player: p, turns: seen, own: turns}
		expected, got := judgements()[t.Name].check(q, s)
		if s.unjudged != "" {
			p.unjudged(p.turn, at, a.Type, s.unjudged)
			continue
		}
		p.res.Judged++
		if expected != "" {
			text := a.Message
			if text == "" {
				text = q.Message
			}
			p.fail(Failure{What: a.Type, Expected: expected, Got: got, Message: text, Field: at})
		}
	}
}

// whenUnmet says what a condition of an assertion misses; "" when it holds.
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
		return fmt.Sprintf("no tool that fits %q was called", w.ToolCalledPattern)
	case w.AnyToolCalled && len(calls) == 0:
		return "no tool was called"
	case len(calls) < w.MinToolCalls:
		return fmt.Sprintf("%s made, and %d needed", times(len(calls)), w.MinToolCalls)
	}
	return ""
}

// readParams reads the parameters of an assertion; message says what is wrong with them.
// lenient keeps what is not known, as PromptKit does.
func readParams(t *v1.AssertionType, a *v1.Assertion, lenient bool) (_ *params, message string) {
	q := &params{Type: a.Type}
	given := map[string]json.RawMessage{}
	if len(a.Params) > 0 {
		if err := json.Unmarshal(a.Params, &given); err != nil {
			return nil, "the parameters must be an object, got " + v1.JSONKind(a.Params)
		}
	}
	for _, key := range sortedKeys(given) {
		switch {
		case slices.Contains(t.Params, key) || key == "message":
		case lenient && (key == "min_score" || key == "max_score"):
			return nil, "it is judged by a score (" + key + ")"
		case lenient:
			q.unknown = append(q.unknown, key)
			delete(given, key)
		default:
			message = fmt.Sprintf("unknown parameter %q: expected %s", key, strings.Join(t.Params, ", "))
			message += v1.DidYouMean(key, t.Params)
			return nil, message
		}
	}
	known, err := json.Marshal(given)
	if err == nil {
		err = json.Unmarshal(known, q)
	}
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return nil, fmt.Sprintf("parameter %q: expected %s, got %s", wrong.Field, jsonType(wrong.Type), wrong.Value)
	}
	if err != nil {
		return nil, "cannot read the parameters: " + err.Error()
	}
	if message := q.expressions(); message != "" {
		return nil, message
	}
	if need := judgements()[t.Name].need; need != nil {
		if message := need(q); message != "" {
			return nil, message
		}
	}
	return q, ""
}

// jsonType names a Go type of a parameter as people write it.
func jsonType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Slice:
		return "a list"
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Map, reflect.Struct:
		return "an object"
	}
	return "a string"
}

// decode reads a parameter that the manifest's reader let through.
func decode(raw json.RawMessage) any {
	doc, err := validate.Decode(raw)
	if err != nil {
		return nil
	}
	return doc
}
