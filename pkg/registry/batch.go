package registry

import (
	"context"
	"crypto/rand"
	"sync"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Outcome is what [Registry.Execute] returns for one call of many.
type Outcome struct {
	Result v1.Result
	Err    error
}

// ExecuteAll carries out the calls of one turn. Policies are asked in the order
// of the calls, so that it is always the same ones that a limit refuses; then the
// calls run at once, at most Options.Parallel of them, which [WithParallel] lowers.
// Outcomes are in the order asked, and one failure does not stop the others. Calls
// that name no session share one of their own.
func (r *Registry) ExecuteAll(ctx context.Context, calls []v1.Call) []Outcome {
	out := make([]Outcome, len(calls))
	own := rand.Text()
	limit := make(chan struct{}, r.parallel(ctx))
	var wg sync.WaitGroup
	for i := range calls {
		c := r.begin(calls[i])
		if c.Session == "" {
			c.Session = own
		}
		ctx := r.observer.begin(ctx, c)
		r.admit(ctx, c)
		limit <- struct{}{}
		wg.Go(func() {
			defer func() { <-limit }()
			r.run(ctx, c)
			out[i].Result, out[i].Err = c.finish()
			r.observer.end(ctx, c)
		})
	}
	wg.Wait()
	return out
}
