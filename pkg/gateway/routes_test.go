package gateway_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/replica"
	"toolctl.dev/toolctl/pkg/store/memory"
)

// Requests that only replicas may send count for the rate limit of their address if they do not come from a replica.
func TestRoutesOfReplicasHaveARate(t *testing.T) {
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, []byte(strings.Repeat("0123456789abcdef", 4)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	at := make(chan net.Addr, 1)
	st := memory.New(memory.Options{})
	t.Cleanup(func() { st.Close() })
	o := gateway.Options{Store: st, Replicas: &gateway.Replicas{KeyFile: keys}, Limits: admission.Limits{Rate: admission.Rate{PerSecond: 0.001, Burst: 2}}}
	o.HTTP.Listening = func(a net.Addr) { at <- a }
	g, err := gateway.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(ctx, ln) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	url := "http://" + (<-at).String()
	for i, path := range []string{replica.Path, replica.StreamPath, replica.Path, replica.StreamPath} {
		want := http.StatusUnauthorized
		if i >= 2 {
			want = http.StatusTooManyRequests
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Close = true
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("request %d to %s: %d, want %d", i, path, res.StatusCode, want)
		}
	}
}
