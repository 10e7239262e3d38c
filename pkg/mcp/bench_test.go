package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/executors"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/registry"
)

// BenchmarkCall compares a call through a registry with the same call through the bare SDK, which is the
// lower bound. The two take turns, so that other load on the machine affects both. The ratio is that of the
// medians.
func BenchmarkCall(b *testing.B) {
	args := json.RawMessage(`{"message":"hello","n":42}`)
	h := serveHTTP(b, nil)
	stateless := serveHTTP(b, &sdk.StreamableHTTPOptions{Stateless: true})
	transports := []struct {
		name   string
		server *v1.MCPServer
		bare   func() sdk.Transport
	}{
		{"stdio", stdio("s", "sdk"), func() sdk.Transport {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), roleVar+"=sdk")
			return &sdk.CommandTransport{Command: cmd}
		}},
		{"http", web("s", h.URL), func() sdk.Transport { return &sdk.StreamableClientTransport{Endpoint: h.URL} }},
		{"stateless", web("s", stateless.URL), func() sdk.Transport { return &sdk.StreamableClientTransport{Endpoint: stateless.URL} }},
	}
	for _, tr := range transports {
		session, err := sdk.NewClient(&sdk.Implementation{Name: "bare", Version: "1"}, nil).Connect(b.Context(), tr.bare(), nil)
		if err != nil {
			b.Fatal(err)
		}
		bare := func(ctx context.Context) error {
			res, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "echo", Arguments: args})
			if err == nil && len(res.Content) != 1 {
				err = fmt.Errorf("got %d parts", len(res.Content))
			}
			return err
		}
		up := mcp.NewUpstreams([]*v1.MCPServer{tr.server}, mcp.Options{})
		tool := v1.NewObject(v1.KindTool).(*v1.Tool)
		tool.Metadata.Name = "echo"
		tool.Spec = v1.ToolSpec{Description: "d", MCP: &v1.MCPToolSpec{Server: "s"}, InputSchema: json.RawMessage(`{"type":"object","properties":{"message":{"type":"string"},"n":{"type":"integer"}},"required":["message"]}`)}
		reg, err := registry.New([]v1.Object{tool, tr.server}, registry.Options{Executors: executors.All(executors.Options{Upstream: up})})
		if err != nil {
			b.Fatal(err)
		}
		ours := func(ctx context.Context) error {
			res, err := reg.Execute(ctx, v1.Call{Tool: "echo", Args: args})
			if err == nil && len(res.Content) != len(args) {
				err = fmt.Errorf("got %s", res.Content)
			}
			return err
		}
		for _, inFlight := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/%d", tr.name, inFlight), func(b *testing.B) {
				sides := []func(context.Context) error{bare, ours}
				times := [2][]time.Duration{}
				for i := range b.N + 3 { // the first turns open the sessions
					for k := range sides {
						side := (i + k) % 2
						took := turn(b, inFlight, sides[side])
						if i >= 3 {
							times[side] = append(times[side], took)
						}
					}
				}
				floor, cost := median(times[0]), median(times[1])
				b.ReportMetric(float64(floor)/float64(inFlight), "bare-ns/call")
				b.ReportMetric(float64(cost)/float64(inFlight), "registry-ns/call")
				b.ReportMetric(float64(cost)/float64(floor), "ratio")
				b.ReportMetric(0, "ns/op")
			})
		}
		if err := up.Close(); err != nil {
			b.Error(err)
		}
		reg.Close()
		session.Close()
	}
}

// turn returns the duration of inFlight concurrent calls.
func turn(b *testing.B, inFlight int, call func(context.Context) error) time.Duration {
	began := time.Now()
	var calls sync.WaitGroup
	for range inFlight {
		calls.Go(func() {
			if err := call(b.Context()); err != nil {
				b.Error(err)
			}
		})
	}
	calls.Wait()
	return time.Since(began)
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
