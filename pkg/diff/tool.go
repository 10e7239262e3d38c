package diff

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/validate"
)

const otherExecution = "calls are executed differently; arguments and results are still validated against the schemas"

var toolRules = []rule{
	{"", "", []string{"/spec/hints", "/spec/input_schema", "/spec/output_schema", "/spec/validation", "/spec/timeout_ms", "/spec/http/timeout_ms", "/spec/redact", "/spec/http/redact", "/spec/client/consent/required", "/spec/preference/enabled", "/spec/http/allow_private_network"}},
	{Neutral, "models read the description", []string{"/spec/description"}},
	{Neutral, "examples are tests and documentation", []string{"/spec/examples"}},
	{Neutral, "people read the title", []string{"/spec/hints/title"}},
	{Neutral, "only the search of tools reads the keywords", []string{"/spec/keywords"}},
	{Neutral, "it is shown to people", []string{"/spec/client"}},
	{Neutral, "the order in which tools are offered", []string{"/spec/preference"}},
	{Unknown, "requests authenticate differently", []string{"/spec/http/auth"}},
	{Unknown, "calls go to a different URL", []string{"/spec/http/url"}},
	{Unknown, otherExecution, []string{"/spec/http", "/spec/mode"}},
	{Unknown, "calls go to another tool of a server", []string{"/spec/mcp"}},
	{Unknown, "the mock returns a different result", []string{"/spec/mock_result", "/spec/mock_template", "/spec/mock_result_file", "/spec/mock_template_file", "/spec/mock_parts"}},
	{Unknown, "results are cached for a different time", []string{"/spec/cache"}},
	{Unknown, "a failed call affects prompt runs differently", []string{"/spec/on_error"}},
	{Unknown, "clients can read different files", []string{"/spec/resources"}},
}

func (j *judgement) tool(ctx context.Context, before, after *v1.Tool) {
	j.byRules(toolRules)
	j.arguments(before, after)
	j.results(before, after)
	j.hints("/spec/hints", before.Spec.Hints, after.Spec.Hints)
	j.consent(before, after)
	if j.first("/spec/timeout_ms") != "" {
		j.shorter("/spec/timeout_ms", cmp.Or(before.Spec.TimeoutMS, v1.DefaultTimeoutMS), cmp.Or(after.Spec.TimeoutMS, v1.DefaultTimeoutMS))
	}
	if b, a := before.Spec.HTTP, after.Spec.HTTP; b != nil && a != nil {
		if j.first("/spec/http/timeout_ms") != "" {
			j.shorter("/spec/http/timeout_ms", cmp.Or(b.TimeoutMS, before.Spec.TimeoutMS, v1.DefaultTimeoutMS), cmp.Or(a.TimeoutMS, after.Spec.TimeoutMS, v1.DefaultTimeoutMS))
		}
		j.allows("/spec/http/allow_private_network", b.AllowPrivateNetwork, a.AllowPrivateNetwork, "the tool may reach private networks")
		j.masks("/spec/http/redact", b.Redact, a.Redact)
	} else if b == nil && a != nil && a.AllowPrivateNetwork {
		j.allows("/spec/http/allow_private_network", false, true, "the tool may reach private networks")
	}
	j.masks("/spec/redact", before.Spec.Redact, after.Spec.Redact)
	if before.Offered() != after.Offered() {
		if after.Offered() {
			j.add(Compatible, "/spec/preference/enabled", "the tool is listed and offered to models", nil)
		} else {
			j.add(Risky, "/spec/preference/enabled", "the tool is no longer listed or offered to models; calls by its name still work", nil)
		}
	} else if p := j.first("/spec/preference/enabled"); p != "" {
		j.add(Neutral, p, "the default value is now explicit, or implicit again", nil)
	}
	if s, t := subject(before), subject(after); !reflect.DeepEqual(s, t) {
		at := cmp.Or(j.first("/metadata/labels"), j.first("/spec/mcp"), j.first("/spec"))
		tighter, looser := policy.CompareTools(ctx, j.world.policies[after.Namespace()], s, t)
		j.cases(func(*policy.Case) string { return at }, tighter, looser)
	}
}

// arguments compares the sets of accepted arguments. Without enforcement, all arguments are accepted.
func (j *judgement) arguments(before, after *v1.Tool) {
	schema := j.first("/spec/input_schema") != ""
	if !schema && j.first("/spec/validation") == "" {
		return
	}
	b, a := before.Spec.Validation, after.Spec.Validation
	old, now, at := before.Spec.InputSchema, after.Spec.InputSchema, "/spec/input_schema"
	if b.ArgsMode() != v1.Enforce {
		old = nil
	}
	if a.ArgsMode() != v1.Enforce {
		now = nil
	}
	if b.ArgsMode() != a.ArgsMode() && (old == nil) != (now == nil) {
		n := len(j.reasons)
		j.schema(at, old, now, Input, after.FromPromptKit(), a.Coerces())
		if p := j.first("/spec/validation/args"); p != "" {
			j.moved(n, p)
		}
	} else if schema {
		j.schema(at, old, now, Input, after.FromPromptKit(), a.Coerces())
	}
	switch p := cmp.Or(j.first("/spec/validation/coerce"), j.first("/spec/validation")); {
	case b.Coerces() && !a.Coerces():
		if w := j.coercedOnly(before, after); w != nil {
			j.add(Breaking, p, "arguments are no longer coerced: some that were accepted are refused", w)
		} else {
			j.add(Unknown, p, "arguments are no longer coerced; no arguments were found that are refused for this reason", nil)
		}
	case !b.Coerces() && a.Coerces():
		j.add(Compatible, p, "arguments are coerced before they are validated", nil)
	}
}

// coercedOnly returns arguments that fit the old tool only after coercion and do not fit the new tool.
func (j *judgement) coercedOnly(before, after *v1.Tool) any {
	from, _ := j.sample(before.Spec.InputSchema, before.FromPromptKit()).(json.RawMessage)
	base, err := validate.Decode(from)
	doc, ok := base.(map[string]any)
	if err != nil || !ok {
		return nil
	}
	old := j.checker.cache.Schema(before.Spec.InputSchema, draftOf(before.FromPromptKit()))
	now := j.checker.cache.Schema(after.Spec.InputSchema, draftOf(after.FromPromptKit()))
	var outline struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(before.Spec.InputSchema, &outline) != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(outline.Properties)) {
		for _, text := range []string{"1", "true", "[]", "{}"} {
			try := maps.Clone(doc)
			try[name] = text
			_, _, violations, err := old.Check(try, true)
			if err != nil || len(violations) > 0 {
				continue
			}
			try[name] = text
			if violations, err := now.Validate(try); err == nil && len(violations) > 0 {
				return encode(try)
			}
		}
	}
	return nil
}

// results compares the sets of possible results. Without enforcement, all results are possible.
func (j *judgement) results(before, after *v1.Tool) {
	mode := func(t *v1.Tool) string { return t.Spec.Validation.ResultMode() }
	if j.first("/spec/output_schema") == "" && mode(before) == mode(after) {
		if p := j.first("/spec/validation"); p != "" && !slices.ContainsFunc(j.reasons, func(r Reason) bool { return under(r.Pointer, "/spec/validation") }) {
			j.add(Neutral, p, "the default value is now explicit or implicit again, or other violations are logged", nil)
		}
		return
	}
	old, now := before.Spec.OutputSchema, after.Spec.OutputSchema
	if mode(before) != v1.Enforce {
		old = nil
	}
	if mode(after) != v1.Enforce {
		now = nil
	}
	at := "/spec/output_schema"
	n := len(j.reasons)
	j.schema(at, old, now, Output, after.FromPromptKit(), false)
	if p := j.first("/spec/validation/result"); p != "" && j.first(at) == "" {
		j.moved(n, p)
	}
}

// hints judges the effect of hints: clients request fewer confirmations for read-only calls, and toolctl
// retries idempotent calls.
func (j *judgement) hints(at string, before, after *v1.Hints) {
	if p := j.first(at); p == "" {
		return
	}
	b, a := effectsOf(before), effectsOf(after)
	n := len(j.reasons)
	turned := func(name string, was, is bool, on, off string, looserWhen bool) {
		p := j.first(at + "/" + name)
		if was == is {
			return
		}
		class, text := Tighter, off
		if is {
			text = on
		}
		if is == looserWhen {
			class = Looser
		}
		j.add(class, cmp.Or(p, j.first(at)), text, nil)
	}
	turned("read_only", b.readOnly, a.readOnly, "the tool now claims to change nothing: clients may call it without asking a person", "the tool no longer claims to change nothing: clients may ask a person first", true)
	if b.readOnly == a.readOnly || j.first(at+"/destructive") != "" {
		turned("destructive", b.destructive, a.destructive, "the tool now warns that it may delete or overwrite: clients may ask a person first", "the tool no longer warns that it may delete or overwrite: clients may call it without asking", false)
	}
	if b.retryable != a.retryable {
		turned("idempotent", b.retryable, a.retryable, "failed calls may be retried even if they may have had an effect", "failed calls that may have had an effect are no longer retried", true)
	}
	turned("open_world", b.openWorld, a.openWorld, "the tool now claims to reach external systems", "the tool now claims not to reach external systems: clients may trust its results", false)
	if len(j.reasons) == n {
		if p := j.first(at); p != at+"/title" {
			j.add(Neutral, p, "the hints have the same effect as before", nil)
		}
	}
}

type effects struct{ readOnly, destructive, openWorld, retryable bool }

func effectsOf(h *v1.Hints) effects {
	if h == nil {
		h = &v1.Hints{}
	}
	is := func(p *bool, byDefault bool) bool {
		if p == nil {
			return byDefault
		}
		return *p
	}
	ro := is(h.ReadOnly, false)
	return effects{ro, is(h.Destructive, !ro), is(h.OpenWorld, true), h.Retryable()}
}

// consent judges changes to the approval that a call requires.
func (j *judgement) consent(before, after *v1.Tool) {
	p := j.first("/spec/client/consent/required")
	b, a := before.AsksConsent(), after.AsksConsent()
	c := &policy.Case{Tool: after.Metadata.Name, Namespace: after.Namespace(), Rule: "spec.client.consent.required", Was: v1.DecisionAllow, Now: v1.DecisionPending}
	switch p = cmp.Or(p, j.first("/spec/client/consent"), j.first("/spec/client")); {
	case !b && a:
		j.add(Tighter, p, "each call waits until a person consents", c)
	case b && !a:
		c.Was, c.Now = c.Now, c.Was
		j.add(Looser, p, "calls no longer wait until a person consents", c)
	}
}

// masks reports the fields of results that are no longer masked, and those that are masked now.
func (j *judgement) masks(at string, before, after []string) {
	p := j.first(at)
	if p == "" {
		return
	}
	n := len(j.reasons)
	if gone := missing(before, after); gone != "" {
		j.add(Looser, p, gone+" is no longer masked in results, errors and the audit", nil)
	}
	if more := missing(after, before); more != "" {
		j.add(Risky, p, more+" is masked in results: readers get ***", nil)
	}
	if len(j.reasons) == n {
		j.add(Neutral, p, "the same fields are masked", nil)
	}
}

// missing lists the items of a that are not in b.
func missing(a, b []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) }), ", ")
}

// allows judges a change of a switch that permits something.
func (j *judgement) allows(at string, before, after bool, what string) {
	switch p := j.first(at); {
	case !before && after:
		j.add(Looser, cmp.Or(p, at), what, nil)
	case before && !after:
		j.add(Tighter, cmp.Or(p, at), "no longer: "+what, nil)
	case p != "":
		j.add(Neutral, p, "the default value is now explicit, or implicit again", nil)
	}
}
