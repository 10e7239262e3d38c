package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Handler carries out one call; see [Registry.Execute] for what it returns.
type Handler func(ctx context.Context, call v1.Call) (v1.Result, error)

// Middleware goes around every call: those of [Registry.Execute] and
// [Registry.ExecuteAll], so those of the command line, of MCP clients, of scenarios and of
// a model's loop. It is outside of the whole pipeline: next looks the tool up, checks the
// arguments, asks the policies, writes the audit and executes. What next returns was
// validated and redacted, and is in the audit.
//
// A middleware may change the call and the result, make the call again, or answer
// without next: nothing of the pipeline happens then, so there is no policy, no audit
// line, no metric and no span. An error that is none of the typed errors of api/v1 becomes
// a [v1.ExecutionError] with its text. A panic fails the call.
//
// In [Registry.ExecuteAll] the calls go through the middleware at once, and next waits
// until the policies have decided on the calls before it.
type Middleware func(next Handler) Handler

// around returns the middleware of the registry around h.
func (r *Registry) around(h Handler) Handler {
	all := r.opts.Middleware
	if len(all) == 0 {
		return h
	}
	for _, a := range slices.Backward(all) {
		h = a(h)
	}
	return func(ctx context.Context, in v1.Call) (res v1.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				res, err = v1.Result{}, &v1.ExecutionError{Tool: in.Tool, Phase: v1.PhaseExecute, Message: fmt.Sprintf("a middleware panicked: %v", p)}
			}
			res, err = complete(ctx, in, res, err)
		}()
		return h(ctx, in)
	}
}

// complete fills what a middleware left out of its own answer.
func complete(ctx context.Context, in v1.Call, res v1.Result, err error) (v1.Result, error) {
	res.Tool = cmp.Or(res.Tool, in.Tool)
	res.Namespace = cmp.Or(res.Namespace, in.Namespace)
	switch err = typed(ctx, in.Tool, err); {
	case err != nil:
		res.Status = v1.StatusFailed
		if res.Error == nil {
			res.Error = v1.NewResultError(err)
		}
	case res.Status == "":
		res.Status = v1.StatusComplete
	}
	return res, err
}

// typed makes an error of somebody's code one of api/v1.
func typed(ctx context.Context, tool string, err error) error {
	if err == nil || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err
	}
	var (
		invalid *v1.ValidationError
		failed  *v1.ExecutionError
		remote  *v1.MCPError
		refused *v1.PolicyError
		missing *v1.NotFoundError
	)
	if errors.As(err, &invalid) || errors.As(err, &failed) || errors.As(err, &remote) || errors.As(err, &refused) || errors.As(err, &missing) {
		return err
	}
	return &v1.ExecutionError{Tool: tool, Phase: v1.PhaseExecute, Message: err.Error(), Cause: err}
}
