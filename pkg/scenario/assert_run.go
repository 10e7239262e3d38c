package scenario

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/prompt"
)

// How the use of a scripted model is counted.
const (
	bytesPerToken  = 4
	tokensPerUSD   = 100_000
	defaultExecTTL = 120 * time.Second
)

// usage is what a model used, in tokens.
type usage struct{ in, out int64 }

func tokens(bytes int) int64 { return int64((bytes + bytesPerToken - 1) / bytesPerToken) }

func latencyBudget(q *params, s *scope) (expected, got string) {
	var took float64
	for _, c := range allCalls(s.turns) {
		took += c.Result.DurationMS
	}
	if took <= *q.MaxMS {
		return "", ""
	}
	return fmt.Sprintf("at most %v ms", *q.MaxMS), fmt.Sprintf("%.3f ms", took)
}

func costBudget(q *params, s *scope) (expected, got string) {
	var u usage
	replies := 0
	for _, t := range s.turns {
		u.in, u.out = u.in+t.usage.in, u.out+t.usage.out
		replies += t.replies
	}
	if replies == 0 {
		s.unjudged = "no model was asked"
		return "", ""
	}
	cost := float64(u.in+u.out) / tokensPerUSD
	got = fmt.Sprintf("%s in, %d out, about %.4f dollars", clip.Count(int(u.in), "token"), u.out, cost)
	switch {
	case q.MaxCostUSD != nil && cost > *q.MaxCostUSD:
		return fmt.Sprintf("at most %v dollars", *q.MaxCostUSD), got
	case q.MaxInputTokens != nil && u.in > *q.MaxInputTokens:
		return fmt.Sprintf("at most %s in", clip.Count(int(*q.MaxInputTokens), "token")), got
	case q.MaxOutputTokens != nil && u.out > *q.MaxOutputTokens:
		return fmt.Sprintf("at most %s out", clip.Count(int(*q.MaxOutputTokens), "token")), got
	case q.MaxTotalTokens != nil && u.in+u.out > *q.MaxTotalTokens:
		return "at most " + clip.Count(int(*q.MaxTotalTokens), "token"), got
	}
	return "", ""
}

// anyPolicy are the names by which guardrail_triggered asks for any policy.
var anyPolicy = []string{"tool_policy", v1.KindToolPolicy, "policy"}

func needGuardrail(q *params) string {
	switch {
	case first(q.ValidatorType, q.Validator) == "":
		return "the parameter validator_type is missing"
	case q.Direction != "" && !slices.Contains([]string{prompt.DirectionInput, prompt.DirectionOutput, prompt.DirectionBoth}, q.Direction):
		return fmt.Sprintf("parameter \"direction\": expected input, output or both, got %q", q.Direction)
	}
	return ""
}

// guardrailTriggered asks whether a policy refused a call, or a validator of the prompt
// a text.
func guardrailTriggered(q *params, s *scope) (expected, got string) {
	name := first(q.ValidatorType, q.Validator)
	want := q.ShouldTrigger == nil || *q.ShouldTrigger
	var refusals []string
	triggered := false
	for _, c := range allCalls(s.own) {
		d := c.Result.Policy
		if d == nil || d.Decision != v1.DecisionDeny || q.Direction != "" {
			continue
		}
		refusals = append(refusals, c.name()+" by rule "+d.Rule+" of policy "+d.Policy)
		rule, _, _ := cutIndex(d.Rule)
		triggered = triggered || slices.Contains(anyPolicy, name) || name == d.Policy || name == d.Rule || name == rule
	}
	for _, v := range s.verdicts() {
		if q.Direction == "" || q.Direction == prompt.DirectionBoth || q.Direction == v.Direction {
			refusals = append(refusals, "validator "+v.Validator+": "+v.Reason)
			triggered = triggered || name == v.Validator
		}
	}
	if !triggered && !s.player.isGuardrail(name) && !s.player.isValidator(name) {
		s.unjudged = s.player.noValidator(name)
		return "", ""
	}
	if triggered == want {
		return "", ""
	}
	got = "no refusal"
	if refusals != nil {
		got = listed(refusals)
	}
	if want {
		return "a refusal by " + name, got
	}
	return "no refusal by " + name, got
}

// cutIndex cuts the index of a rule such as limits[0].
func cutIndex(rule string) (name, index string, found bool) {
	for i, r := range rule {
		if r == '[' {
			return rule[:i], rule[i:], true
		}
	}
	return rule, "", false
}

// isGuardrail reports whether a name is one that a refusal could have.
func (p *player) isGuardrail(name string) bool {
	if rule, _, _ := cutIndex(name); slices.Contains(anyPolicy, name) || slices.Contains(policy.RuleNames(p.runner.opts.Rules...), rule) {
		return true
	}
	for _, o := range p.runner.objects {
		h := o.Head()
		switch {
		case h.Kind == v1.KindToolPolicy && (name == h.Metadata.Name || name == h.Namespace()+"/"+h.Metadata.Name),
			h.Kind == v1.KindPrompt && name == "prompt/"+h.Metadata.Name:
			return true
		}
	}
	return p.spec.Policy != nil && name == "scenario/"+p.res.Name
}

// toolExec calls a tool to judge the assertion. The call is of a session of its own and
// is not among the calls of the scenario.
func toolExec(q *params, s *scope) (expected, got string) {
	limit := defaultExecTTL
	if q.TimeoutSeconds > 0 {
		limit = time.Duration(q.TimeoutSeconds) * time.Second
	}
	ctx, cancel := context.WithTimeout(s.ctx, limit)
	defer cancel()
	p := s.player
	call := p.newCall(q.tool(), q.Args)
	call.Session += " tool_exec"
	var res v1.Result
	if p.runner.opts.Live != nil {
		res, _ = p.reg.Execute(ctx, call) // the result says all of the error
	} else {
		res, _ = p.reg.Execute(context.WithValue(ctx, slotKey{}, &slot{player: p}), call)
	}
	if res.Status == v1.StatusComplete {
		made := Call{Result: res}
		if regexp.MustCompile(q.SuccessPattern).MatchString(made.resultText()) { // read before
			return "", ""
		}
		return "a result of " + q.tool() + " that matches " + show(q.SuccessPattern), show(made.resultText())
	}
	got = res.Status
	if res.Error != nil {
		got += ": " + res.Error.Type + ": " + res.Error.Message
	}
	return q.tool() + " to complete", got
}
