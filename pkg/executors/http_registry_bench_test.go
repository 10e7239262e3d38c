package executors_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/executors"
	"toolctl.dev/toolctl/pkg/registry"
)

// BenchmarkHTTPThroughRegistry compares a whole call, with validated arguments and policies, with the same request and
// decoding by net/http. Both alternate within one measurement.
func BenchmarkHTTPThroughRegistry(b *testing.B) {
	const answer = `{"location":"Oslo","temperature_c":21.5,"conditions":"sunny","wind":{"speed":3.2,"from":"NW"},"hours":[1,2,3,4,5,6,7,8]}`
	for name, inFlight := range map[string]int{"serial": 1, "64-in-flight": 64} {
		b.Run(name, func(b *testing.B) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, answer)
			}))
			defer srv.Close()
			tool := &v1.Tool{Header: v1.Header{APIVersion: v1.APIVersion, Kind: v1.KindTool, Metadata: v1.Metadata{Name: "weather"}}}
			tool.Spec.Description = "weather"
			tool.Spec.InputSchema = json.RawMessage(`{"type":"object","properties":{"location":{"type":"string"}},"required":["location"]}`)
			tool.Spec.HTTP = &v1.HTTPSpec{URL: srv.URL, AllowPrivateNetwork: true, Headers: map[string]string{"Authorization": "Bearer ${KEY}"}}
			env := func(string) (string, bool) { return "topsecret", true }
			reg, err := registry.New([]v1.Object{tool}, registry.Options{Executors: executors.All(executors.Options{Env: env})})
			if err != nil {
				b.Fatal(err)
			}
			defer reg.Close()
			transport := http.DefaultTransport.(*http.Transport).Clone()
			transport.MaxIdleConnsPerHost = 128 // the default of 2 would dial again for most of 64 calls
			client := &http.Client{Transport: transport}
			defer client.CloseIdleConnections()
			args := []byte(`{"location":"Oslo"}`)
			ours := func() error {
				_, err := reg.Execute(b.Context(), v1.Call{Tool: "weather", Args: args})
				return err
			}
			plain := func() error { return post(b.Context(), client, srv.URL, args) }
			const batch = 256
			run(b, ours, batch, inFlight)
			run(b, plain, batch, inFlight)
			var spent, floor time.Duration
			for i := 0; b.Loop(); i++ {
				if i%2 == 0 {
					spent += run(b, ours, batch, inFlight)
					floor += run(b, plain, batch, inFlight)
				} else {
					floor += run(b, plain, batch, inFlight)
					spent += run(b, ours, batch, inFlight)
				}
			}
			calls := float64(b.N * batch)
			b.ReportMetric(float64(spent)/calls, "execute-ns/call")
			b.ReportMetric(float64(floor)/calls, "plain-ns/call")
			b.ReportMetric(float64(spent)/float64(floor), "ratio")
		})
	}
}

// post is the floor: net/http alone makes the same request and decodes the response.
func post(ctx context.Context, client *http.Client, url string, args []byte) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
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
	if err != nil {
		return err
	}
	var v any
	return json.Unmarshal(body, &v)
}

// run makes n calls, inFlight at once, and returns the total time.
func run(b *testing.B, call func() error, n, inFlight int) time.Duration {
	began := time.Now()
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
	return time.Since(began)
}
