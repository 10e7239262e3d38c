package registry

import (
	"context"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/budget"
	"toolctl.dev/toolctl/internal/callctx"
)

// weighResult reserves the memory to check a result and to return it. The call has been executed, so the reservation
// waits up to the timeout of the call.
func weighResult(ctx context.Context, t *tool, limit time.Duration, res *v1.Result) error {
	if !budget.Bounds(ctx) {
		return nil
	}
	n := budget.OfText(res.TextSize())
	if t.out != nil && t.spec.Spec.Validation.ResultMode() != v1.Off && !same(res.Content, t.spec.Spec.MockResult) {
		n += budget.Weigh(res.Content)
	}
	within := callctx.WithDeadline(ctx, limit)
	defer within.Stop()
	if err := budget.Hold(within, n); err != nil {
		*res = v1.Result{}
		return &v1.ExecutionError{Tool: t.spec.Metadata.Name, Phase: v1.PhaseExecute, Message: "the call was made, but its result is not passed on: " + err.Error(), Cause: err}
	}
	return nil
}
