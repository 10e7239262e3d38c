package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// BenchmarkGrowth alternates the same operation of serve with a small and a large number of one thing. It reports the
// medians small-us and large-us, and growth, the ratio of large to small:
//
//	tools      list all tools, of 50 and of 5,000, for each tool
//	upstreams  call a tool of an MCP server beside 0 and 99 other servers
//	sessions   call a tool beside 1 and 1,000 idle sessions; session-KB is the memory of
//	           an idle session
//	objects    call a tool of a store of 10 objects and of 10,000
func BenchmarkGrowth(b *testing.B) {
	bin := buildToolctl(b)
	b.Run("tools", func(b *testing.B) {
		list := func(n int) func() error {
			serve := launchServe(b, command(bin), "-f", mocks(b, n))
			cs := openOrdinary(b, &sdk.StreamableClientTransport{Endpoint: serve.url}, versions[0].version)
			return func() error {
				found := 0
				for _, err := range cs.Tools(b.Context(), nil) {
					if err != nil {
						return err
					}
					found++
				}
				if found != n {
					return fmt.Errorf("%d tools, want %d", found, n)
				}
				return nil
			}
		}
		grow(b, list(50), list(5000), 100)
	})
	b.Run("upstreams", func(b *testing.B) {
		upstream := launch(b, again(b, "echo-upstream"))
		call := func(n int) func() error {
			var text strings.Builder
			for i := range n {
				fmt.Fprintf(&text, "---\napiVersion: toolctl.dev/v1\nkind: MCPServer\nmetadata: {name: s%d}\nspec: {url: %q}\n", i, upstream.url+versions[0].path)
			}
			file := filepath.Join(b.TempDir(), "servers.yaml")
			writeFile(b, file, text.String())
			serve := launchServe(b, command(bin), "-f", file)
			return callOf(b, serve.url, fmt.Sprintf("s%d__echo", n-1), `{"size":100}`)
		}
		grow(b, call(1), call(100), 1)
	})
	b.Run("sessions", func(b *testing.B) {
		dir, each := mocks(b, 10), 0.0
		call := func(idle int) func() error {
			serve := launchServe(b, command(bin), "-f", dir)
			one := callOf(b, serve.url, "tool-1", `{"id":"a"}`)
			before := serve.memory(b, "RssAnon")
			for range idle {
				openWire(b, serve.url, versions[0].version)
			}
			each = (serve.memory(b, "RssAnon") - before) * 1024 / float64(idle)
			return one
		}
		grow(b, call(1), call(1000), 1)
		b.ReportMetric(each, "session-KB")
	})
	b.Run("objects", func(b *testing.B) {
		call := func(n int) func() error {
			store := filepath.Join(b.TempDir(), "state.db")
			if out, err := command(bin, "apply", "-f", mocks(b, n), "--store", store, "-o", "name").CombinedOutput(); err != nil {
				b.Fatalf("%v\n%.1000s", err, out)
			}
			return callOf(b, launchServe(b, command(bin), "--store", store).url, "tool-1", `{"id":"a"}`)
		}
		grow(b, call(10), call(10_000), 1)
	})
}

// mocks returns a folder with n tools.
func mocks(b *testing.B, n int) string {
	b.Helper()
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "---\napiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: tool-%d}\nspec:\n  description: Looks number %[1]d up\n  input_schema: {type: object, properties: {id: {type: string, minLength: 1}}, required: [id]}\n  mock_result: {ok: true}\n", i)
	}
	dir := b.TempDir()
	writeFile(b, filepath.Join(dir, "tools.yaml"), text.String())
	return dir
}

// callOf returns a function that calls one tool in its own session.
func callOf(b *testing.B, at, tool, args string) func() error {
	b.Helper()
	w := openWire(b, at, versions[0].version)
	c := newCaller(b, at, w.request(at, 1, tool, args))
	call := func() error { _, err := c.call(); return err }
	if err := call(); err != nil { // the server closes a connection without a request soon
		b.Fatal(err)
	}
	return call
}

// grow alternates and times two functions; large does times as much work as small.
func grow(b *testing.B, small, large func() error, times float64) {
	b.Helper()
	var took [2][]float64
	for n := 0; b.Loop() || n < 3; n++ {
		for i, do := range []func() error{small, large} {
			began := time.Now()
			if err := do(); err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], float64(time.Since(began).Nanoseconds())/1e3)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(middle(took[0]), "small-us")
	b.ReportMetric(middle(took[1]), "large-us")
	b.ReportMetric(middle(took[1])/middle(took[0])/times, "growth")
}
