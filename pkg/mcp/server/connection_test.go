package server_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
	"time"

	"toolctl.dev/toolctl/pkg/mcp/server"
)

// A client that sends its next call over the connection of a stream has read the stream, so a large stream
// is dropped. Streams behind a proxy, and small streams, can be read again.
func TestLargeStreamThatWasReadIsNotKept(t *testing.T) {
	for _, tt := range []struct {
		name    string
		size    int
		headers []string
		dropped bool
	}{
		{"large", 1 << 20, nil, true},
		{"small", 100, nil, false},
		{"through a proxy", 1 << 20, []string{"X-Forwarded-For", "192.0.2.1"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, _, let := waiting()
			e := listen(t, server.New(c, server.Options{StreamAfter: 50 * time.Millisecond}), server.HTTPOptions{})
			client := &raw{t: t, url: e.url}
			client.open(`{}`)
			one := &http.Transport{MaxConnsPerHost: 1}
			t.Cleanup(one.CloseIdleConnections)
			call := func(size int) (first, answer sse) {
				t.Helper()
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.url+"/mcp", strings.NewReader(slowCall))
				if err != nil {
					t.Fatal(err)
				}
				req.Header = http.Header{
					"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
					"Mcp-Protocol-Version": {client.version}, "Mcp-Session-Id": {client.session},
				}
				for i := 0; i < len(tt.headers); i += 2 {
					req.Header.Set(tt.headers[i], tt.headers[i+1])
				}
				res, err := (&http.Client{Transport: one}).Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				lines := bufio.NewScanner(res.Body)
				lines.Buffer(nil, 8<<20)
				events := &eventsOf{t, res, lines}
				first, _ = events.next()
				let <- strings.Repeat("x", size)
				answer, _ = events.next()
				if _, more := events.next(); more || len(answer.data) < size {
					t.Fatalf("an answer of %d bytes, and more after it: %t", len(answer.data), more)
				}
				return first, answer
			}
			first, answer := call(tt.size)
			if again := client.events("", first.id).rest(); len(again) != 1 || again[0] != answer.data {
				t.Fatalf("before the next call %d events are read again", len(again))
			}
			call(10)
			again := client.events("", first.id)
			if dropped := again.res.StatusCode == http.StatusBadRequest; dropped != tt.dropped {
				t.Errorf("status %d after the next call", again.res.StatusCode)
			}
		})
	}
}
