package console_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"toolctl.dev/toolctl/pkg/console"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/manifest"
)

const callLook = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"look","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientInfo":{"name":"b","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`

// BenchmarkCall makes 1,000 calls a second over HTTP, alternating between a gateway with a console, where three pages
// show the calls, and one without. It reports by how many percent the console slows down the median call.
func BenchmarkCall(b *testing.B) {
	start := func(with bool) string {
		o := gateway.Options{Source: gateway.FS(fstest.MapFS{"all.yaml": {Data: []byte(heldPay)}}, manifest.Options{})}
		c := console.New(console.Options{})
		if with {
			o.OnCall, o.OnPending = c.Called, c.Waits
		}
		g, err := gateway.Open(b.Context(), o)
		if err != nil {
			b.Fatal(err)
		}
		if with {
			c.Attach(g)
		}
		at := httptest.NewServer(g.Handler())
		b.Cleanup(func() {
			at.CloseClientConnections()
			at.Close()
			_ = c.Close()
			_ = g.Close()
		})
		if with {
			c.Listening(at.URL + "/ui/")
			for range 3 {
				_, link, _ := strings.Cut(c.Link(at.URL+"/ui/"), "/ui/")
				watch(b, at.URL+"/ui/"+link, at.URL+"/ui/events?calls=1")
			}
		}
		return at.URL + "/mcp"
	}
	urls := [2]string{start(false), start(true)}
	const part = 100
	var took [2][]time.Duration
	pace := time.NewTicker(time.Millisecond)
	defer pace.Stop()
	for i := 0; b.Loop(); i++ {
		which := i / part % 2
		<-pace.C
		began := time.Now()
		req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, urls[which], strings.NewReader(callLook))
		if err != nil {
			b.Fatal(err)
		}
		for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "look"} {
			req.Header.Set(name, value)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			b.Fatal(res.Status)
		}
		took[which] = append(took[which], time.Since(began))
	}
	if len(took[1]) > 0 {
		median := func(all []time.Duration) float64 { slices.Sort(all); return float64(all[len(all)/2]) }
		without, with := median(took[0]), median(took[1])
		b.ReportMetric(100*(with-without)/without, "slower-%")
		b.ReportMetric(without/1000, "us-without")
	}
}

// watch signs in and reads the events of calls until the benchmark ends.
func watch(b *testing.B, link, events string) {
	b.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Get(link) //nolint:noctx // its end is that of the server
	if err != nil {
		b.Fatal(err)
	}
	res.Body.Close()
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, events, nil)
	if err != nil {
		b.Fatal(err)
	}
	req.AddCookie(res.Cookies()[0])
	if res, err = client.Do(req); err != nil {
		b.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _, _ = io.Copy(io.Discard, res.Body) }()
	b.Cleanup(func() { res.Body.Close(); <-done; client.CloseIdleConnections() })
}
