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

// plainCall is the floor: net/http alone makes the same request and reads the response in the same way.
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

// TestHTTPLeaksNothing makes 10,000 calls, 64 at once, some of which fail, and checks that no goroutines and
// connections remain.
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
	// Each response that is too large costs its connection, but there are never many more connections than calls.
	if most > 2*inFlight+8 {
		t.Errorf("%d connections were open at once for %d calls at once", most, inFlight)
	}
}
