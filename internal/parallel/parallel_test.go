package parallel_test

import (
	"sync/atomic"
	"testing"

	"toolctl.dev/toolctl/internal/parallel"
)

func TestEach(t *testing.T) {
	for _, n := range []int{0, 1, 2, 1000} {
		calls := make([]atomic.Int32, n)
		parallel.Each(n, func(i int) { calls[i].Add(1) })
		for i := range calls {
			if got := calls[i].Load(); got != 1 {
				t.Errorf("of %d: part %d was done %d times", n, i, got)
			}
		}
	}
}
