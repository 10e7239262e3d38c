package registry

import (
	"context"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/policy"
)

// AdmitPrompt asks the policies about a call of a prompt as if it were a tool: a model
// that runs one prompt may call another. The run of that prompt is the caller's
// business; when it never begins, the admission is to be released. The error is a
// [v1.PolicyError], a [v1.NotFoundError], or says that the counters failed.
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

// promptSubject is a prompt as the policies see it when it is called.
func promptSubject(h *v1.Header) policy.Subject {
	return policy.Subject{Namespace: h.Namespace(), Name: h.Metadata.Name, Labels: h.Metadata.Labels}
}

type parallelKey struct{}

// WithParallel returns a context in which [Registry.ExecuteAll] runs at most n calls at
// once, when Options.Parallel does not say fewer. n is at least 1.
func WithParallel(ctx context.Context, n int) context.Context {
	return context.WithValue(ctx, parallelKey{}, max(n, 1))
}

func (r *Registry) parallel(ctx context.Context) int {
	if n, ok := ctx.Value(parallelKey{}).(int); ok {
		return min(n, r.opts.Parallel)
	}
	return r.opts.Parallel
}
