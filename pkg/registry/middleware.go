package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Handler executes one call; see [Registry.Execute] for what it returns.
type Handler func(ctx context.Context, call v1.Call) (v1.Result, error)

// Middleware wraps every call of [Registry.Execute] and [Registry.ExecuteAll], and so those of the command line, MCP
// clients, scenarios and the agent loop. It is outside of the whole pipeline: next looks the tool up, checks the
// arguments, evaluates the policies, writes the audit log and executes. The result of next is validated, redacted and
// audited.
//
// A middleware may change the call and the result, repeat the call, or answer without next. In the last case the
// pipeline does not run, so there is no policy decision, audit record, metric or span. An error that is not one of the
// typed errors of api/v1 becomes a [v1.ExecutionError] with its text. A panic fails the call.
//
// In [Registry.ExecuteAll] the calls go through the middleware in parallel, and next waits until the policies have
// decided on the preceding calls.
type Middleware func(next Handler) Handler

// around wraps h in the middleware of the registry.
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

// complete fills the missing fields of a middleware's own answer.
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

// typed converts the error of a middleware to a typed error of api/v1.
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
