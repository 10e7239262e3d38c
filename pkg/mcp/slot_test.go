package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
)

// A call waits for a free session with the server, for as long as the call may take.
func TestPeersWaitForSessions(t *testing.T) {
	began, release := make(chan struct{}, 2), make(chan struct{})
	rec := record(t, func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
		began <- struct{}{}
		<-release
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, resultFor(id))
	})
	u := open(t, mcp.Options{MaxPeerSessions: 1}, web("s", rec.url))
	call := func(ctx context.Context, peer string) error {
		ctx = mcp.WithPeer(ctx, &mcp.Peer{Key: peer, Modern: true, Can: mcp.Capabilities{Roots: true}})
		_, err := u.Call(ctx, key("s"), "t", nil, false)
		return err
	}
	done := make(chan error, 2)
	go func() { done <- call(t.Context(), "a") }()
	<-began // it uses the only session
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- call(ctx, "impatient") }()
	cancel()
	var busy *v1.MCPError
	if err := <-done; !errors.Is(err, context.Canceled) && !errors.As(err, &busy) {
		t.Errorf("got %v", err)
	}
	go func() { done <- call(t.Context(), "b") }()
	close(release)
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
