package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Rule is a rule written in Go. A policy uses it as spec.NAME, whose value the schema of the
// rule describes. Rules written in Go are evaluated after limits and before require_approval, in
// the order of their registration.
//
//	policy.Rule{
//		Name:        "business_hours",
//		Description: "business_hours refuses calls outside of working hours.",
//		Schema:      json.RawMessage(`{"type":"object","properties":{"from":{"type":"integer"},"to":{"type":"integer"}}}`),
//		Compile: func(value json.RawMessage) (policy.Judge, error) { … },
//	}
type Rule struct {
	// Name is the field of spec. Required.
	Name string
	// Description says in sentences what the field means, for explain.
	Description string
	// Schema is the JSON Schema of the field's value; the zero value allows any value.
	Schema json.RawMessage
	// Compile reads the value of one policy. It is called for each policy with the rule
	// whenever policies are compiled. An error refuses every call. Required.
	Compile func(value json.RawMessage) (Judge, error)
}

// Judge decides whether a call may run. why is the reason for either decision, for people and
// models to read. An error refuses the call. It must be safe for concurrent use, must return
// soon after ctx ends, and must not count calls, since another rule may refuse a call that it
// allows.
type Judge func(ctx context.Context, s Subject, req Request) (ok bool, why string, err error)

// Extension returns the field that the rule adds to policies.
func (r Rule) Extension() v1.Extension {
	schema := r.Schema
	if len(schema) == 0 {
		schema = json.RawMessage("true")
	}
	return v1.Extension{Kind: v1.KindToolPolicy, Name: r.Name, Description: r.Description, Schema: schema}
}

// kind is one kind of rule.
type kind struct {
	name string
	make func(*v1.ToolPolicySpec) []*rule
}

// kinds returns every kind of rule in the order of evaluation; all other lists of rules are
// derived from it. Each of goRules is a kind, and the kind without a name refuses every call for
// unknown rules.
func kinds(goRules []Rule) []kind {
	all := []kind{
		{"tool_choice", toolChoice},
		{"max_tool_calls_per_turn", maxToolCallsPerTurn},
		{"blocklist", blocklist},
		{"max_total_tool_calls", maxTotalToolCalls},
		{"allowlist", allowlist},
		{"limits", limits},
	}
	for _, r := range goRules {
		all = append(all, kind{r.Name, r.compile})
	}
	return append(all, kind{"", unknown(goRules)}, kind{"require_approval", requireApproval})
}

// RuleNames returns the names of the rules that a policy can have, in the order of
// evaluation.
func RuleNames(goRules ...Rule) []string {
	var names []string
	for _, k := range kinds(goRules) {
		if k.name != "" {
			names = append(names, k.name)
		}
	}
	return names
}

// RulesOf returns the rules of a policy that can refuse a call or make it wait, as
// decisions name them, such as "limits[0]", in the order of evaluation.
func RulesOf(s *v1.ToolPolicySpec) []string {
	var names []string
	for _, k := range kinds(nil) {
		for _, r := range k.make(s) {
			if !r.idle {
				names = append(names, ruleName(r.field))
			}
		}
	}
	return names
}

func (r Rule) compile(s *v1.ToolPolicySpec) []*rule {
	value, ok := s.Extensions[r.Name]
	if !ok {
		return nil
	}
	out := &rule{field: v1.Pointer("/spec", r.Name)}
	judge, err := r.read(value)
	if err != nil {
		out.judge = func(*Subject) verdict { return verdict{why: "the rule is broken: " + err.Error()} }
		return []*rule{out}
	}
	out.ask = func(ctx context.Context, t *Subject, req Request) verdict { return judged(ctx, judge, t, req) }
	return []*rule{out}
}

// read calls Compile and turns a panic into an error.
func (r Rule) read(value json.RawMessage) (j Judge, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %v", p)
		}
	}()
	if r.Compile == nil {
		return nil, fmt.Errorf("rule %q has no Compile", r.Name)
	}
	if j, err = r.Compile(slices.Clone(value)); err == nil && j == nil {
		err = fmt.Errorf("rule %q compiled to nothing", r.Name)
	}
	return j, err
}

// judged evaluates a rule. If the rule fails or panics, it refuses the call.
func judged(ctx context.Context, judge Judge, t *Subject, req Request) (v verdict) {
	defer func() {
		if p := recover(); p != nil {
			v = verdict{why: fmt.Sprintf("the rule panicked: %v", p)}
		}
	}()
	ok, why, err := judge(ctx, *t, req)
	if err != nil {
		return verdict{why: "the rule failed: " + err.Error()}
	}
	return verdict{ok: ok, why: why}
}

// unknown returns a refusing rule for each extension without a rule written in Go.
func unknown(goRules []Rule) func(*v1.ToolPolicySpec) []*rule {
	return func(s *v1.ToolPolicySpec) []*rule {
		var rules []*rule
		for _, name := range s.Extensions.Names() {
			if slices.ContainsFunc(goRules, func(r Rule) bool { return r.Name == name }) {
				continue
			}
			why := fmt.Sprintf("this program has no rule %q", name)
			rules = append(rules, &rule{field: v1.Pointer("/spec", name), judge: func(*Subject) verdict { return verdict{why: why} }})
		}
		return rules
	}
}
