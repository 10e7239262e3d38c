package registry

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/redact"
	"toolctl.dev/toolctl/pkg/policy"
)

// Planner is an [Executor] that can say what it would do.
type Planner interface {
	// Plan returns what Execute would send, with secrets masked, as a value that
	// marshals to JSON. It reaches nothing.
	Plan(ctx context.Context, t *v1.Tool, args json.RawMessage) (any, error)
}

// Plan is what a call would do, had it been made.
type Plan struct {
	Tool      string `json:"tool"`
	Namespace string `json:"namespace"`
	// Executor is the name of the executor that would carry it out.
	Executor string `json:"executor"`
	// Args are the arguments as they would be executed, redacted.
	Args json.RawMessage `json:"args"`
	// Policy is what the policies would decide; nil when none matches.
	Policy *v1.PolicyDecision `json:"policy,omitempty"`
	// Request is what the executor would send; nil when it sends nothing.
	Request any `json:"request,omitempty"`
}

// Plan takes a call through the pipeline of [Registry.Execute] as far as the executor,
// which it asks for its plan. It counts nothing and calls nothing. The error is
// the one that Execute would give.
func (r *Registry) Plan(ctx context.Context, in v1.Call) (Plan, error) {
	c, ex, err := r.explain(ctx, in, true)
	if err != nil {
		return Plan{}, err
	}
	t := c.tool
	p := Plan{Tool: t.spec.Metadata.Name, Namespace: t.spec.Namespace(), Executor: t.executor.Name(), Args: redact.JSON(c.args, t.redact)}
	if ex != nil && len(ex.Matched) > 0 {
		if ex.Decision == v1.DecisionDeny {
			return Plan{}, refusal(ex)
		}
		p.Policy = &v1.PolicyDecision{Decision: ex.Decision, Rule: ex.Rule, Policy: ex.Policy}
	}
	if planner, ok := t.executor.(Planner); ok {
		if p.Request, err = planner.Plan(ctx, t.spec, c.args); err != nil {
			return Plan{}, err
		}
	}
	return p, nil
}

// refusal is the error of a call that an explanation says is refused.
func refusal(ex *policy.Explanation) error {
	e := &v1.PolicyError{Tool: ex.Tool, Policy: ex.Policy, Rule: ex.Rule}
	for _, v := range ex.Verdicts {
		if v.Policy != ex.Policy || v.Rule != ex.Rule {
			continue
		}
		e.Message, e.Source = v.Message, v.Source
		if v.Limit != nil {
			e.Limit, e.Used = *v.Limit, *v.UsedBefore
		}
	}
	return e
}

// ExplainPolicy says what every rule of every policy makes of a call, and what
// the counters are before and after it, without calling. Arguments that are
// given and wrong are an error, as policies are asked only after they were
// checked; a call without arguments is not held to the schema.
func (r *Registry) ExplainPolicy(ctx context.Context, in v1.Call) (policy.Explanation, error) {
	c, ex, err := r.explain(ctx, in, in.Args != nil)
	if err != nil {
		return policy.Explanation{}, err
	}
	if ex == nil {
		return policy.Explanation{Tool: c.tool.spec.Metadata.Name, Namespace: c.tool.spec.Namespace(), Decision: v1.DecisionAllow}, nil
	}
	return *ex, nil
}

func (r *Registry) explain(ctx context.Context, in v1.Call, checkArgs bool) (*call, *policy.Explanation, error) {
	begun := r.begin(in)
	c := &begun
	if c.tool, c.err = r.snap.Load().lookup(c.Namespace, c.Tool); c.err != nil {
		return c, nil, c.err
	}
	if reasons := c.tool.reasons(); reasons != nil {
		return c, nil, v1.NewValidationError(v1.ManifestInvalid, c.tool.spec.Metadata.Name, reasons)
	}
	if c.tool.refused != nil {
		return c, nil, c.tool.refused
	}
	if checkArgs {
		if err := r.checkArgs(ctx, c); err != nil {
			return c, nil, err
		}
	}
	if c.tool.chain == nil {
		return c, nil, nil
	}
	req := policy.Request{Session: c.Session, Turn: c.Turn, Principal: c.Principal, Now: c.began}
	if checkArgs {
		req.Args = c.args
	}
	ex, err := policy.Over(ctx, c.tool.chain).Explain(ctx, r.opts.Counters, req)
	if err != nil {
		return c, nil, fmt.Errorf("read the counters: %w", err)
	}
	return c, &ex, nil
}
