package registry

import (
	"cmp"
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
	turn := make(chan struct{}) // closed when the next call may ask the policies
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
			defer passed() // a middleware may answer by itself
			out[i].Result, out[i].Err = handle(ctx, in)
		})
	}
	wg.Wait()
	return out
}
