package registry

import (
	"context"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/policy"
)

// AdmitPrompt evaluates the policies for a call of a prompt as if it were a tool, because a model that runs one prompt
// may call another. The caller runs the prompt, and must release the admission if the run never begins. The error is a
// [v1.PolicyError], a [v1.NotFoundError], or a failure of the counters.
func (r *Registry) AdmitPrompt(ctx context.Context, call v1.Call) (policy.Admission, error) {
	it, err := r.Get(v1.KindPrompt, call.Namespace, call.Tool)
	if err != nil {
		return policy.Admission{}, err
	}
	a, err := policy.Over(ctx, it.chain).Admit(ctx, r.opts.Counters, policy.Request{
		Session: call.Session, Turn: call.Turn, Principal: call.Principal,
	})
	if err != nil || a.Approval == nil {
		return a, err
	}
	if err := a.Release(ctx); err != nil {
		return a, err
	}
	return a, a.Approval.Refusal("a prompt that is called as a tool cannot wait for approval: name the tools that it calls in the rule instead")
}

// promptSubject returns a prompt as a subject of policies.
func promptSubject(h *v1.Header) policy.Subject {
	return policy.Subject{Namespace: h.Namespace(), Name: h.Metadata.Name, Labels: h.Metadata.Labels}
}

type parallelKey struct{}

// WithParallel returns a context in which [Registry.ExecuteAll] runs at most n calls in parallel, or Options.Parallel
// if that is lower. n is at least 1.
func WithParallel(ctx context.Context, n int) context.Context {
	return context.WithValue(ctx, parallelKey{}, max(n, 1))
}

func (r *Registry) parallel(ctx context.Context) int {
	if n, ok := ctx.Value(parallelKey{}).(int); ok {
		return min(n, r.opts.Parallel)
	}
	return r.opts.Parallel
}
