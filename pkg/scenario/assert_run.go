package scenario

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/params"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/prompt"
)

// Tokens and cost of a scripted model are estimates.
const (
	bytesPerToken      = 4
	tokensPerUSD       = 100_000
	defaultExecSeconds = 120
)

// usage is a number of tokens.
type usage struct{ in, out int64 }

func tokens(bytes int) int64 { return int64((bytes + bytesPerToken - 1) / bytesPerToken) }

type latencyBudget struct {
	MaxMS *float64 `json:"max_ms" need:"max_ms"`
}

func (q *latencyBudget) check(s *scope) (expected, got string) {
	var took float64
	for _, c := range allCalls(s.turns) {
		took += c.Result.DurationMS
	}
	if took <= *q.MaxMS {
		return "", ""
	}
	return fmt.Sprintf("at most %v ms", *q.MaxMS), fmt.Sprintf("%.3f ms", took)
}

type costBudget struct {
	budgets `need:"max_cost_usd, max_input_tokens, max_output_tokens or max_total_tokens"`
}

type budgets struct {
	MaxCostUSD      *float64 `json:"max_cost_usd"`
	MaxInputTokens  *int64   `json:"max_input_tokens"`
	MaxOutputTokens *int64   `json:"max_output_tokens"`
	MaxTotalTokens  *int64   `json:"max_total_tokens"`
}

func (q *costBudget) check(s *scope) (expected, got string) {
	var u usage
	replies := 0
	for _, t := range s.turns {
		u.in, u.out = u.in+t.usage.in, u.out+t.usage.out
		replies += t.replies
	}
	if replies == 0 {
		s.unjudged = "no model was called"
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

// anyPolicy are the names that stand for any policy in guardrail_triggered.
var anyPolicy = []string{"tool_policy", v1.KindToolPolicy, "policy"}

// guardrailTriggered requires that a policy refused a call, or that a validator of the prompt refused a text.
type guardrailTriggered struct {
	ValidatorType string `json:"validator_type" need:"validator_type"`
	Validator     string `json:"validator" need:"validator_type"`
	ShouldTrigger *bool  `json:"should_trigger"`
	Direction     string `json:"direction"`
}

// Invalid implements [params.Checker].
func (q *guardrailTriggered) Invalid() string {
	if !slices.Contains([]string{"", prompt.DirectionInput, prompt.DirectionOutput, prompt.DirectionBoth}, q.Direction) {
		return fmt.Sprintf("parameter \"direction\": expected input, output or both, got %q", q.Direction)
	}
	return ""
}

func (q *guardrailTriggered) check(s *scope) (expected, got string) {
	name := cmp.Or(q.ValidatorType, q.Validator)
	want := q.ShouldTrigger == nil || *q.ShouldTrigger
	var refusals []string
	triggered := false
	for _, c := range allCalls(s.own) {
		d := c.Result.Policy
		if d == nil || d.Decision != v1.DecisionDeny || q.Direction != "" {
			continue
		}
		refusals = append(refusals, c.name()+" by rule "+d.Rule+" of policy "+d.Policy)
		rule, _, _ := strings.Cut(d.Rule, "[") // without the index, as in limits[0]
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

// isGuardrail reports whether the name is that of a policy or rule.
func (p *player) isGuardrail(name string) bool {
	if rule, _, _ := strings.Cut(name, "["); slices.Contains(anyPolicy, name) || slices.Contains(policy.RuleNames(p.runner.opts.Rules...), rule) {
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

// toolExec calls a tool to judge the assertion. The call has its own session and is not among
// the calls of the scenario.
type toolExec struct {
	toolName       `need:"tool_name"`
	Args           json.RawMessage   `json:"args"`
	TimeoutSeconds int               `json:"timeout_seconds"` // default: 120
	SuccessPattern params.Expression `json:"success_pattern"`
}

// Invalid implements [params.Checker].
func (q *toolExec) Invalid() string {
	if len(q.Args) > 0 && v1.JSONKind(q.Args) != "object" {
		return `parameter "args": expected an object`
	}
	return ""
}

func (q *toolExec) check(s *scope) (expected, got string) {
	limit := defaultExecSeconds
	if q.TimeoutSeconds > 0 {
		limit = q.TimeoutSeconds
	}
	ctx, cancel := context.WithTimeout(s.ctx, time.Duration(limit)*time.Second)
	defer cancel()
	p := s.player
	call := p.newCall(q.name(), q.Args)
	call.Session += " tool_exec"
	res, _ := p.reg.Execute(context.WithValue(ctx, slotKey{}, &slot{player: p}), call) // the result holds the error
	if res.Status == v1.StatusComplete {
		made := Call{Result: res}
		if q.SuccessPattern.Regexp == nil || q.SuccessPattern.MatchString(made.resultText()) {
			return "", ""
		}
		return "a result of " + q.name() + " that matches " + show(q.SuccessPattern.String()), show(made.resultText())
	}
	got = res.Status
	if res.Error != nil {
		got += ": " + res.Error.Type + ": " + res.Error.Message
	}
	return q.name() + " to complete", got
}
