package diff

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/prompt"
	"toolctl.dev/toolctl/pkg/validate"
)

const otherModel = "the model may answer differently"

var promptRules = []rule{
	{"", "", []string{"/spec/template", "/spec/system_prompt", "/spec/template_syntax", "/spec/input", "/spec/arguments", "/spec/output", "/spec/tools", "/spec/policy"}},
	{Neutral, "people read the title", []string{"/spec/title"}},
	{Neutral, "models and people read the description", []string{"/spec/description"}},
	{Unknown, otherModel, []string{"/spec/model", "/spec/provider", "/spec/parameters", "/spec/thinking", "/spec/thinking_budget"}},
	{Unknown, "models receive results in another form", []string{"/spec/result_form"}},
	{Unknown, "clients can read different files", []string{"/spec/resources"}},
}

func (j *judgement) prompt(ctx context.Context, before, after *v1.Prompt) {
	j.byRules(promptRules)
	if at := cmp.Or(j.first("/spec/input"), j.first("/spec/arguments")); at != "" {
		n := len(j.reasons)
		j.schema("/spec/input", variables(before), variables(after), Input, after.FromPromptKit(), true)
		if j.first("/spec/input") == "" { // the list of arguments changed
			j.moved(n, at)
		}
	}
	if j.first("/spec/output") != "" {
		j.schema("/spec/output", before.Spec.Output, after.Spec.Output, Output, after.FromPromptKit(), false)
	}
	j.template(ctx, before, after)
	if p := j.first("/spec/tools"); p != "" {
		spec := func(tools []string) *v1.ToolPolicySpec {
			return &v1.ToolPolicySpec{Allowlist: append([]string{}, tools...)}
		}
		j.rules(ctx, p, "the model may call the same tools", j.world.tools, spec(before.Spec.Tools), spec(after.Spec.Tools))
	}
	if p := j.first("/spec/policy"); p != "" {
		j.rules(ctx, p, "the rules are equivalent", j.world.tools, before.Spec.Policy, after.Spec.Policy)
	}
}

// variables returns a schema of the variables of a prompt, from spec.input and spec.arguments.
func variables(p *v1.Prompt) json.RawMessage {
	schema := map[string]any{"type": "object"}
	if len(p.Spec.Input) > 0 {
		doc, err := validate.Decode(p.Spec.Input)
		m, ok := doc.(map[string]any)
		if err != nil || !ok {
			return p.Spec.Input
		}
		schema = m
	}
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	required = slices.Clone(required)
	for _, a := range p.Spec.Arguments {
		if a.Required && len(a.Default) == 0 && !slices.Contains(required, any(a.Name)) {
			required = append(required, a.Name)
		}
	}
	// A property with a default is optional.
	required = slices.DeleteFunc(required, func(name any) bool {
		text, _ := name.(string)
		property, _ := properties[text].(map[string]any)
		_, has := property["default"]
		return has
	})
	declared := map[string]any{}
	maps.Copy(declared, properties)
	for _, a := range p.Spec.Arguments {
		if _, has := declared[a.Name]; !has {
			declared[a.Name] = map[string]any{}
		}
	}
	if delete(schema, "required"); len(required) > 0 {
		schema["required"] = required
	}
	if len(declared) > 0 {
		schema["properties"] = declared
	}
	return encode(schema)
}

// template renders both templates with the same variables: variables that rendered before must
// still render.
func (j *judgement) template(ctx context.Context, before, after *v1.Prompt) {
	at := cmp.Or(j.first("/spec/template"), j.first("/spec/system_prompt"), j.first("/spec/template_syntax"))
	if at == "" {
		return
	}
	old, err := prompt.Compile(before)
	now, err2 := prompt.Compile(after)
	if err != nil || err2 != nil {
		j.add(Unknown, at, "models read a different text, and one of the templates cannot be read", nil)
		return
	}
	var tries []json.RawMessage
	sample, _ := j.sample(variables(before), before.FromPromptKit()).(json.RawMessage)
	full := map[string]any{}
	if doc, err := validate.Decode(sample); err == nil {
		if m, ok := doc.(map[string]any); ok {
			full = m
		}
	}
	tries = append(tries, sample)
	for _, name := range old.Variables() {
		if _, has := full[name]; !has {
			full[name] = "text"
		}
	}
	tries = append(tries, encode(full))
	for _, vars := range tries {
		if len(vars) == 0 {
			continue
		}
		if _, err := old.Render(ctx, vars); err != nil {
			continue
		}
		if doc, err := validate.Decode(vars); err == nil && !fits(j, variables(after), doc, after.FromPromptKit()) {
			continue // the change of the input reports this already
		}
		if _, err := now.Render(ctx, vars); err != nil {
			j.add(Breaking, at, "variables that were accepted are refused: "+err.Error(), vars)
			return
		}
	}
	j.add(Neutral, at, "models read a different text", nil)
}

func fits(j *judgement, schema json.RawMessage, doc any, promptKit bool) bool {
	_, _, violations, err := j.checker.cache.Schema(schema, draftOf(promptKit)).Check(doc, true)
	return err == nil && len(violations) == 0
}

// rules compares the policy rules inside another object.
func (j *judgement) rules(ctx context.Context, at, same string, tools *policy.Tools, before, after *v1.ToolPolicySpec) {
	of := func(s *v1.ToolPolicySpec) *v1.ToolPolicy {
		if s == nil {
			s = &v1.ToolPolicySpec{}
		}
		return &v1.ToolPolicy{Header: v1.Header{Kind: v1.KindToolPolicy, Metadata: v1.Metadata{Name: j.head.Metadata.Name, Namespace: j.head.Namespace()}}, Spec: *s}
	}
	b, a := of(before), of(after)
	tighter, looser := policy.Compare(ctx, b, a, tools)
	j.cases(func(*policy.Case) string { return at }, tighter, looser)
	switch {
	case tighter != nil || looser != nil:
	case policy.Same(&b.Spec, &a.Spec):
		j.add(Compatible, at, same, nil)
	default:
		j.add(Unknown, at, "no call was found that gets a different decision", nil)
	}
}
