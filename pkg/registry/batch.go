package registry

import (
	"cmp"
	"context"
	"crypto/rand"
	"sync"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Outcome is what [Registry.Execute] returns for one call of [Registry.ExecuteAll].
type Outcome struct {
	Result v1.Result
	Err    error
}

// ExecuteAll executes the calls of one turn. Policies decide in the order of the calls, so that a limit always refuses
// the same calls. The calls then run in parallel, at most Options.Parallel at a time, which [WithParallel] lowers.
// Outcomes are in the order of the calls, and a failed call does not stop the others. Calls without a session share a
// new one.
func (r *Registry) ExecuteAll(ctx context.Context, calls []v1.Call) []Outcome {
	out := make([]Outcome, len(calls))
	own := rand.Text()
	limit := make(chan struct{}, r.parallel(ctx))
	turn := make(chan struct{}) // closed when the policies may decide on the next call
	close(turn)
	var wg sync.WaitGroup
	for i := range calls {
		in := calls[i]
		in.Session = cmp.Or(in.Session, own)
		mine, next := turn, make(chan struct{})
		turn = next
		passed := sync.OnceFunc(func() {
			<-mine
			close(next)
		})
		handle := r.around(func(ctx context.Context, in v1.Call) (v1.Result, error) {
			<-mine
			c := r.begin(in)
			ctx = r.observer.begin(ctx, &c)
			r.admit(ctx, &c)
			limit <- struct{}{}
			defer func() { <-limit }()
			passed()
			r.work(ctx, &c)
			return r.conclude(ctx, &c)
		})
		wg.Go(func() {
			defer passed() // a middleware may answer without calling next
			out[i].Result, out[i].Err = handle(ctx, in)
		})
	}
	wg.Wait()
	return out
}
