package scenario

import (
	"encoding/json"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/internal/redact"
)

// conceal masks the values that the tools of the scenario redact, in the whole report. This
// includes values in expectations, which are as secret as the values they describe.
func (p *player) conceal() {
	all, rules, values := p.masker()
	if all == nil {
		return
	}
	for i := range p.res.Failures {
		f := &p.res.Failures[i]
		m, own := all, rules
		if t := p.tool(f.Tool); t != nil {
			own = t.RedactRules()
			m = redact.New(own, values...)
		}
		f.conceal(m, own)
	}
	for i := range p.res.Warnings {
		w := &p.res.Warnings[i]
		w.Expected, w.Got, w.Message = all.Message(w.Expected), all.Message(w.Got), all.Message(w.Message)
	}
	for i := range p.res.Unjudged {
		p.res.Unjudged[i].Reason = all.Message(p.res.Unjudged[i].Reason)
	}
	p.res.Reason = all.Message(p.res.Reason)
	for i := range p.res.Turns {
		t := &p.res.Turns[i]
		t.Text, t.Parts = all.Text(t.Text), slices.Clone(t.Parts)
		for j := range t.Parts {
			t.Parts[j] = all.Part(t.Parts[j])
		}
	}
}

// masker returns a masker for the redaction rules of the scenario's tools and for the values that
// these cover; nil if there are no rules.
func (p *player) masker() (all *redact.Masker, rules, values []string) {
	tools := p.masking()
	if len(tools) == 0 {
		return nil, nil, nil
	}
	for _, t := range tools {
		rules = append(rules, t.RedactRules()...)
	}
	values = p.secrets(tools, rules)
	return redact.New(rules, values...), rules, values
}

// conceal masks one failure. If a masked value is expected, the whole expectation is masked. So is the expectation for
// an object or list with a value that a pointer redacts, because the value may be at another place in the expectation.
func (f *Failure) conceal(m *redact.Masker, rules []string) {
	inside := strings.HasPrefix(f.Got, "{") || strings.HasPrefix(f.Got, "[")
	if f.Path != "" && inside && strings.Contains(f.Got, redact.Mask) && slices.ContainsFunc(rules, func(r string) bool { return strings.HasPrefix(r, "/") }) {
		f.Expected = redact.Mask
	}
	if f.Got == `"`+redact.Mask+`"` && f.Expected != anyValue && f.Expected != noValue && f.Message == "" {
		f.Expected, f.Message = redact.Mask, "the tool masks it (redact): only "+f.Got+" is allowed here"
	}
	f.Path, f.Expected, f.Got, f.Message = m.Values(f.Path), m.Message(f.Expected), m.Message(f.Got), m.Message(f.Message)
}

// tool returns the tool with a name; nil if it does not exist.
func (p *player) tool(name string) *v1.Tool {
	if name == "" {
		return nil
	}
	item, err := p.reg.Lookup(p.namespace(p.reg, name), name)
	if err != nil {
		return nil
	}
	return item.Tool()
}

// masking returns the tools of the scenario with redaction rules, each once.
func (p *player) masking() []*v1.Tool {
	if p.reg == nil { // the scenario was not played
		return nil
	}
	names := sortedKeys(p.spec.Mocks)
	for _, t := range p.spec.Turns {
		for _, c := range t.Calls {
			names = append(names, c.Tool)
		}
	}
	for _, c := range allCalls(p.res.Turns) {
		names = append(names, c.Tool, c.key.Namespace+"/"+c.key.Name)
	}
	slices.Sort(names)
	var tools []*v1.Tool
	for _, name := range slices.Compact(names) {
		t := p.tool(name)
		if t != nil && len(t.RedactRules()) > 0 && !slices.ContainsFunc(tools, func(o *v1.Tool) bool { return o.Key() == t.Key() }) {
			tools = append(tools, t)
		}
	}
	return tools
}

// secrets returns the values that rules cover: in arguments, in the results of mocks, and in the
// expectations for both.
func (p *player) secrets(tools []*v1.Tool, rules []string) (values []string) {
	hide := func(doc json.RawMessage) { values = append(values, redact.Covered(doc, rules)...) }
	for _, t := range tools {
		hide(t.Spec.MockResult)
	}
	for _, m := range p.spec.Mocks {
		hide(m.Result)
		for i := range m.Responses {
			hide(m.Responses[i].Result)
		}
	}
	for _, m := range p.mocks {
		if m.cassette == nil {
			continue
		}
		for _, c := range m.cassette.calls {
			hide(c.Args)
			hide(c.Result)
		}
	}
	for _, c := range allCalls(p.res.Turns) {
		hide(c.raw)
	}
	eachObject(p.expected(), 0, hide)
	return values
}

// expected returns all expectations and assertions of the scenario as one document.
func (p *player) expected() any {
	var all []any
	for i := range p.spec.Turns {
		t := &p.spec.Turns[i]
		for _, c := range t.Calls {
			all = append(all, decode(c.Args))
			if c.Expect != nil {
				all = append(all, decode(c.Expect.Result))
			}
		}
		if t.Expect != nil {
			all = append(all, decode(t.Expect.Result))
		}
		for _, a := range t.Assertions {
			all = append(all, decode(a.Params))
		}
	}
	for _, a := range p.spec.Assertions {
		all = append(all, decode(a.Params))
	}
	return all
}

// eachObject calls f for every object and list in a document that may be arguments or a result,
// because pointers of rules begin there.
func eachObject(doc any, depth int, f func(json.RawMessage)) {
	const deepest = 6
	if depth > deepest {
		return
	}
	switch v := doc.(type) {
	case map[string]any:
		f(jsontext.Of(v))
		for _, item := range v {
			eachObject(item, depth+1, f)
		}
	case []any:
		if depth > 0 {
			f(jsontext.Of(v))
		}
		for _, item := range v {
			eachObject(item, depth+1, f)
		}
	}
}
