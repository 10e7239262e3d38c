package server_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp/server"
)

// A turn without a name ends after its session had no running call for the idle time.
func TestTurnsWithoutANameEnd(t *testing.T) {
	for protocol, version := range versions {
		t.Run(protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var turns []string
				c := catalogOf(offer("", "do"))
				c.do = func(ctx context.Context, call v1.Call) (v1.Result, error) {
					mu.Lock()
					turns = append(turns, call.Turn)
					mu.Unlock()
					var args struct{ Seconds int }
					if err := json.Unmarshal(call.Args, &args); err == nil {
						select {
						case <-time.After(time.Duration(args.Seconds) * time.Second):
						case <-ctx.Done():
						}
					}
					return v1.Result{Status: v1.StatusComplete, Content: json.RawMessage(`{}`)}, nil
				}
				cs := overStdio(t, server.New(c, server.Options{}), version, nil)
				call := func(seconds int, meta sdk.Meta) string {
					t.Helper()
					if _, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "do", Arguments: map[string]any{"seconds": seconds}, Meta: meta}); err != nil {
						t.Fatal(err)
					}
					mu.Lock()
					defer mu.Unlock()
					return turns[len(turns)-1]
				}
				first := call(0, nil)
				time.Sleep(59 * time.Second)
				if again := call(0, nil); first == "" || again != first {
					t.Errorf("after 59s: turn %q, then %q", first, again)
				}
				time.Sleep(59 * time.Second)
				if named := call(0, sdk.Meta{"toolctl.dev/turn": "mine"}); named != "mine" {
					t.Errorf("a named turn is %q", named)
				}
				time.Sleep(time.Second)
				second := call(300, nil) // runs longer than the idle time
				if second == first {
					t.Errorf("after 60s the turn is still %q", second)
				}
				time.Sleep(59 * time.Second)
				if again := call(0, nil); again != second {
					t.Errorf("59s after a long call: turn %q, then %q", second, again)
				}

				// While one call is running, the turn continues for the others.
				var done sync.WaitGroup
				done.Go(func() { call(200, nil) })
				time.Sleep(100 * time.Second)
				if again := call(0, nil); again != second {
					t.Errorf("beside a call under way: turn %q, then %q", second, again)
				}
				done.Wait()
			})
		})
	}
}
