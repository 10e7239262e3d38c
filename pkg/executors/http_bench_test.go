package executors

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	v1 "toolctl.dev/toolctl/api/v1"
)

const weather = `{"location":"Oslo","temperature_c":21.5,"conditions":"sunny","wind":{"speed":3.2,"from":"NW"},"hours":[1,2,3,4,5,6,7,8]}`

func weatherServer() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, weather)
	}))
}

// plainCall is the floor: the same request by net/http alone, and the same reading.
func plainCall(ctx context.Context, client *http.Client, url string, args []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(args))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer topsecret")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && !json.Valid(body) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// BenchmarkHTTP compares Execute with net/http doing the same. Both take turns within
// one measurement, so that what else the machine does falls on both.
func BenchmarkHTTP(b *testing.B) {
	for _, inFlight := range []int{1, 64} {
		b.Run(map[int]string{1: "serial", 64: "64-in-flight"}[inFlight], func(b *testing.B) {
			srv := weatherServer()
			defer srv.Close()
			h := newTestHTTP(b, map[string]string{"KEY": "topsecret"})
			tool := httpToolOf(v1.HTTPSpec{URL: srv.URL, Headers: map[string]string{"Authorization": "Bearer ${KEY}"}})
			transport := http.DefaultTransport.(*http.Transport).Clone()
			transport.MaxIdleConnsPerHost = 128 // net/http's own 2 would dial anew for most of 64 calls
			client := &http.Client{Transport: transport}
			defer client.CloseIdleConnections()
			args := []byte(`{"location":"Oslo","units":"metric"}`)
			execute := func() error { _, err := h.Execute(b.Context(), tool, args); return err }
			plain := func() error { return plainCall(b.Context(), client, srv.URL, args) }
			run := func(call func() error, n int) time.Duration {
				start := time.Now()
				var wg sync.WaitGroup
				for range inFlight {
					wg.Go(func() {
						for range n / inFlight {
							if err := call(); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
				return time.Since(start)
			}
			const batch = 256
			run(execute, batch)
			run(plain, batch)
			var ours, floor time.Duration
			for i := 0; b.Loop(); i++ {
				if i%2 == 0 {
					ours += run(execute, batch)
					floor += run(plain, batch)
				} else {
					floor += run(plain, batch)
					ours += run(execute, batch)
				}
			}
			calls := float64(b.N * batch)
			b.ReportMetric(float64(ours)/calls, "execute-ns/call")
			b.ReportMetric(float64(floor)/calls, "plain-ns/call")
			b.ReportMetric(float64(ours)/float64(floor), "ratio")
		})
	}
}

// BenchmarkHTTPExecute and BenchmarkHTTPPlain are for allocations and profiles.
func BenchmarkHTTPExecute(b *testing.B) {
	srv := weatherServer()
	defer srv.Close()
	h := newTestHTTP(b, map[string]string{"KEY": "topsecret"})
	tool := httpToolOf(v1.HTTPSpec{URL: srv.URL, Headers: map[string]string{"Authorization": "Bearer ${KEY}"}})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.Execute(b.Context(), tool, json.RawMessage(`{"location":"Oslo"}`)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkHTTPPlain(b *testing.B) {
	srv := weatherServer()
	defer srv.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128}}
	defer client.CloseIdleConnections()
	b.ReportAllocs()
	for b.Loop() {
		if err := plainCall(b.Context(), client, srv.URL, []byte(`{"location":"Oslo"}`)); err != nil {
			b.Fatal(err)
		}
	}
}

// TestHTTPLeaksNothing makes 10,000 calls, 64 at once, a part of which fail, and looks for
// goroutines and connections that stayed.
func TestHTTPLeaksNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	var mu sync.Mutex
	open, most := map[string]bool{}, 0
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/fail":
			w.WriteHeader(500)
		case "/large":
			io.WriteString(w, strings.Repeat("x", 5000))
			return
		}
		io.WriteString(w, weather)
	}))
	srv.Config.ConnState = connCounter(&mu, open, &most)
	srv.Start()
	h := NewHTTP(Options{})
	var tools []*v1.Tool
	for _, path := range []string{"/", "/", "/", "/", "/", "/", "/", "/fail", "/", "/large"} {
		tools = append(tools, httpToolOf(quick(v1.HTTPSpec{URL: srv.URL + path, TimeoutMS: 60_000, Response: &v1.HTTPResponse{MaxBytes: 4000}})))
	}
	const calls, inFlight = 10_000, 64
	var wg sync.WaitGroup
	for w := range inFlight {
		wg.Go(func() {
			for i := w; i < calls; i += inFlight {
				_, err := h.Execute(t.Context(), tools[i%10], json.RawMessage(`{}`))
				if wantErr := i%10 == 7 || i%10 == 9; (err != nil) != wantErr {
					t.Errorf("call %d: %v", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	srv.Close() // waits until every connection is closed or idle
	goleak.VerifyNone(t, before)
	mu.Lock()
	defer mu.Unlock()
	if len(open) != 0 {
		t.Errorf("%d connections stayed open", len(open))
	}
	// Each answer that is too large costs its connection; at no time are there many more than calls.
	if most > 2*inFlight+8 {
		t.Errorf("%d connections were open at once for %d calls at once", most, inFlight)
	}
}
