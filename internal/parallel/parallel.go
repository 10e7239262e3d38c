// Package parallel does work that falls into independent parts on all processors.
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Each calls fn with 0 to n-1, on as many goroutines as there are processors, and returns
// when all calls have returned. If parts are cheap, fn should do several of them.
func Each(n int, fn func(i int)) { Limit(n, runtime.GOMAXPROCS(0), fn) }

// Limit is [Each] with a number of goroutines.
func Limit(n, workers int, fn func(i int)) {
	workers = min(workers, n)
	if workers < 2 {
		for i := range n {
			fn(i)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				fn(i)
			}
		})
	}
	wg.Wait()
}
