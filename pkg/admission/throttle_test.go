package admission

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// rush sends requests of a principal one after the other for a time, and returns their number.
func rush(p *throttle, principal string, size int, d time.Duration) (n int) {
	for until := time.Now().Add(d); time.Now().Before(until); n++ {
		p.wait(context.Background(), principal, size, false)
		time.Sleep(time.Millisecond)
	}
	return n
}

func TestThrottle(t *testing.T) {
	const second = 1000 // requests per second without delays
	newThrottle := func(lags bool) *throttle {
		return &throttle{step: 10 * time.Millisecond, lags: func() bool { return lags }, of: map[string]*throttled{}}
	}
	// others send a request every 20 ms until stop.
	others := func(p *throttle) (stop func() (slowest time.Duration)) {
		ctx, cancel := context.WithCancel(context.Background())
		slowest := make(chan time.Duration)
		go func() {
			var most time.Duration
			for ctx.Err() == nil {
				began := time.Now()
				p.wait(ctx, "ann", 0, false)
				most = max(most, time.Since(began))
				p.wait(ctx, "", 0, false)
				time.Sleep(20 * time.Millisecond)
			}
			slowest <- most
		}()
		return func() time.Duration { cancel(); return <-slowest }
	}
	t.Run("one who is alone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			if n := rush(newThrottle(true), "greedy", 0, time.Second); n != second {
				t.Errorf("%d requests", n)
			}
		})
	})
	t.Run("processors to spare", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newThrottle(false)
			stop := others(p)
			if n := rush(p, "greedy", 0, time.Second); n != second {
				t.Errorf("%d requests", n)
			}
			stop()
		})
	})
	t.Run("too much", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newThrottle(true)
			stop := others(p)
			rush(p, "greedy", 0, time.Second)
			if n := rush(p, "greedy", 0, time.Second); n > 101 || n < 90 {
				t.Errorf("%d requests in a second: expected 100", n)
			}
			if took := stop(); took > 0 {
				t.Errorf("the others waited %s", took)
			}
			time.Sleep(slowing + forgetting)
			p.lags = func() bool { return false }
			if n := rush(p, "greedy", 0, time.Second); n != second {
				t.Errorf("%d requests once there are processors again", n)
			}
		})
	})
	t.Run("large", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newThrottle(true)
			stop := others(p)
			rush(p, "greedy", 50*smallRequest, time.Second)
			if n := rush(p, "greedy", 50*smallRequest, 10*time.Second); n > 22 || n < 18 {
				t.Errorf("%d requests in ten seconds: expected 20", n)
			}
			stop()
		})
	})
	t.Run("equals", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newThrottle(true)
			done := make(chan int)
			go func() { done <- rush(p, "bob", 0, time.Second) }()
			if a, b := rush(p, "ann", 0, time.Second), <-done; a != second || b != second {
				t.Errorf("%d and %d requests", a, b)
			}
		})
	})
	t.Run("no call left", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p, began := newThrottle(false), time.Now()
			for range 11 {
				p.wait(context.Background(), "greedy", 0, true)
			}
			if took := time.Since(began); took != 100*time.Millisecond {
				t.Errorf("11 requests took %s", took)
			}
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			p.wait(ctx, "greedy", 0, true)
			if took := time.Since(began); took != 100*time.Millisecond {
				t.Errorf("one whose client went took %s", took)
			}
		})
	})
	t.Run("what is forgotten", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newThrottle(true)
			for _, name := range []string{"a", "b", "c"} {
				p.wait(context.Background(), name, 0, false)
			}
			time.Sleep(5 * forgetting)
			p.wait(context.Background(), "d", 0, false)
			if len(p.of) != 1 {
				t.Errorf("%d principals are kept", len(p.of))
			}
		})
	})
}

// The lag measures goroutines that wait for processors, and stays low while few goroutines run.
func TestLag(t *testing.T) {
	l := newLag()
	l.high()
	if len(l.counts) < 10 {
		t.Errorf("the runtime has no such histogram: %d buckets", len(l.counts))
	}
}
