package registry

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/redact"
	"toolctl.dev/toolctl/pkg/policy"
)

// Planner is an [Executor] that can describe what it would do.
type Planner interface {
	// Plan returns the request that Execute would send, with secrets masked, as a value that marshals to JSON. It makes
	// no connection.
	Plan(ctx context.Context, t *v1.Tool, args json.RawMessage) (any, error)
}

// Plan describes what a call would do.
type Plan struct {
	Tool      string `json:"tool"`
	Namespace string `json:"namespace"`
	// Executor is the name of the executor that would execute the call.
	Executor string `json:"executor"`
	// Args are the arguments that would be executed, redacted.
	Args json.RawMessage `json:"args"`
	// Policy is the policy decision; nil if no policy matches.
	Policy *v1.PolicyDecision `json:"policy,omitempty"`
	// Request is the request that the executor would send; nil if it sends none.
	Request any `json:"request,omitempty"`
}

// Plan takes a call through the pipeline of [Registry.Execute] up to the executor, and returns the plan of the
// executor. It counts and calls nothing. It returns the same errors as Execute.
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

// refusal returns the error of a call that an explanation refuses.
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

// ExplainPolicy returns what every rule of every policy decides on a call, and the counters before and after it,
// without making the call. Invalid arguments are an error, because policies are evaluated after validation; a call
// without arguments is not validated.
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
