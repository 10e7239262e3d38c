package executors

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

func TestRateOfParallelCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tool := httpToolOf(v1.HTTPSpec{URL: "http://x.example", RateLimit: &v1.HTTPRateLimit{Requests: 3, Per: "second"}})
		h := NewHTTP(Options{})
		start := time.Now()
		var mu sync.Mutex
		sent := map[time.Duration]int{}
		take := func(n int) {
			for range n {
				// A reload creates another tool with the same name, which keeps its rate.
				again := *tool
				r := h.rateOf(&again)
				go func() {
					if err := r.wait(t.Context()); err != nil {
						t.Error(err)
					}
					mu.Lock()
					sent[time.Since(start)]++
					mu.Unlock()
				}()
			}
			synctest.Wait()
		}
		take(4)
		time.Sleep(1500 * time.Millisecond)
		take(4)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		want := map[time.Duration]int{0: 3, time.Second: 1, 1500 * time.Millisecond: 2, 2 * time.Second: 1, 2500 * time.Millisecond: 1}
		for at, n := range want {
			if sent[at] != n {
				t.Errorf("after %s %d requests, want %d (all: %v)", at, sent[at], n, sent)
			}
		}
		changed := *tool.Spec.HTTP
		changed.RateLimit = &v1.HTTPRateLimit{Requests: 4, Per: "second"}
		if other := httpToolOf(changed); h.rateOf(other) == h.rateOf(tool) {
			t.Error("a changed limit has the rate of the old one")
		}
	})
}

func TestRateWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewHTTP(Options{}).rateOf(httpToolOf(v1.HTTPSpec{RateLimit: &v1.HTTPRateLimit{Requests: 1, Per: "hour"}}))
		if err := r.wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		short, done := context.WithTimeout(t.Context(), time.Minute)
		defer done()
		start := time.Now()
		if err := r.wait(short); !errors.Is(err, errRateTooLate) || time.Since(start) > 0 {
			t.Errorf("got %v after %s, want a refusal at once", err, time.Since(start))
		}
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan error)
		for range 2 { // one waits for its time, the other for its turn
			go func() { got <- r.wait(ctx) }()
		}
		synctest.Wait()
		cancel()
		for range 2 {
			if err := <-got; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want the end of the context", err)
			}
		}
		time.Sleep(time.Hour)
		if err := r.wait(t.Context()); err != nil || !r.idleAfter(time.Hour) {
			t.Errorf("got %v: those that gave up took a place", err)
		}
	})
}

func (r *rate) idleAfter(d time.Duration) bool {
	if r.idle() {
		return false
	}
	time.Sleep(d + 1)
	return r.idle()
}

// TestHTTPRateLimit calls a real server in parallel. Pages and retries count, too.
func TestHTTPRateLimit(t *testing.T) {
	var mu sync.Mutex
	var at []time.Time
	srv, _ := serve(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		at = append(at, time.Now())
		mu.Unlock()
		if n == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if n < 4 {
			w.Header().Set("Link", `<?n=`+strings.Repeat("x", n)+`>; rel=next`)
		}
		io.WriteString(w, "[1]")
	})
	h := newTestHTTP(t, nil)
	spec := quick(v1.HTTPSpec{URL: srv.URL, Method: "GET", Paginate: &v1.HTTPPaginate{Style: "link"}, RateLimit: &v1.HTTPRateLimit{Requests: 3, Per: "second"}})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, err := h.Execute(t.Context(), httpToolOf(spec), nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	const slack = 200 * time.Millisecond // a request may arrive later than it was sent
	if len(at) != 7 {
		t.Fatalf("%d requests, want 4 calls, 2 further pages and 1 further attempt", len(at))
	}
	for i := range at[3:] {
		if d := at[i+3].Sub(at[i]); d < time.Second-slack {
			t.Errorf("request %d came %s after request %d", i+4, d, i+1)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	var err error
	for range 4 {
		if _, err = h.Execute(ctx, httpToolOf(spec), nil); err != nil {
			break
		}
	}
	var failed *v1.ExecutionError
	if !errors.As(err, &failed) || failed.Phase != v1.PhaseTimeout {
		t.Errorf("got %v, want a timeout", err)
	}
}

// TestHTTPRateLimitOfOne checks that the message about a limit of one request uses the singular.
func TestHTTPRateLimitOfOne(t *testing.T) {
	srv, _ := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "1") })
	h := newTestHTTP(t, nil)
	tool := httpToolOf(v1.HTTPSpec{URL: srv.URL, Method: "GET", RateLimit: &v1.HTTPRateLimit{Requests: 1, Per: "hour"}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := h.Execute(ctx, tool, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Execute(ctx, tool, nil); err == nil || !strings.Contains(err.Error(), "the rate of 1 request per hour (spec.http.rate_limit)") {
		t.Errorf("got %v", err)
	}
}
