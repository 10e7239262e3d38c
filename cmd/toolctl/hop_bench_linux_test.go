package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// hopPolicy has a rule of each kind that counts or matches names.
const hopPolicy = `
apiVersion: toolctl.dev/v1
kind: MCPServer
metadata: {name: echo}
spec: {%s, tool_names: bare}
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: caps}
spec:
  max_tool_calls_per_turn: 1000000000
  max_total_tool_calls: 1000000000
  blocklist: ["delete-*"]
  limits:
  - {tools: ["echo"], max_calls: 1000000000, per: hour}
`

type protocolVersion struct{ name, version, path string }

// versions are the measured versions of the protocol, each with the path of an upstream that speaks it.
var versions = []protocolVersion{
	{"sessions", "2025-11-25", "/sessions"},
	{"modern", "2026-07-28", "/modern"},
}

// BenchmarkHop compares three ways to call an upstream: directly, through a plain reverse proxy, which is the floor of
// a hop, and through toolctl serve with policies and both validations. Each of the three is its own process. This
// process makes the load with a client that uses almost no time; see [comparison] for the figures.
func BenchmarkHop(b *testing.B) {
	bin := buildToolctl(b)
	upstream := launch(b, again(b, "echo-upstream"))
	proxy := launch(b, again(b, "plain-proxy", upstream.url))
	for _, protocol := range versions {
		dir := b.TempDir()
		writeFile(b, filepath.Join(dir, "hop.yaml"), fmt.Sprintf(hopPolicy, fmt.Sprintf("url: %q", upstream.url+protocol.path)))
		serve := launchServe(b, command(bin), "-f", dir)
		routes := [3]string{upstream.url + protocol.path, proxy.url + protocol.path, serve.url}
		var wires [3]wire
		for i, at := range routes {
			wires[i] = openWire(b, at, protocol.version)
		}
		c := comparison{serve: serve, floor: "proxy", hop: proxy, callers: func(b *testing.B, route, size, inFlight int) (all []func() error) {
			for id := range inFlight {
				c := newCaller(b, routes[route], wires[route].request(routes[route], id, "echo", fmt.Sprintf(`{"size":%d,"note":"a call"}`, size)))
				all = append(all, func() error { _, err := c.call(); return err })
			}
			return all
		}}
		c.run(b, protocol.name, 100, 1<<10, 100<<10)
	}
}

// comparison compares three routes to a tool: the direct one, the floor of a hop, and toolctl serve. They alternate
// every few milliseconds, so that other load of the machine affects all of them. The figures are medians over these
// turns:
//
//	direct/s       calls per second to the upstream
//	FLOOR, serve   calls per second as a fraction of direct
//	FLOOR-p50x, serve-p50x   median time of a call as a multiple of the direct one
//	serve-p99-us   99th percentile of the time of a call through serve
//	FLOOR-cpu-us, serve-cpu-us   processor time of the floor and of toolctl for a call
//	serve-rss-MB   its memory at the end, serve-anon-MB without the pages of the program's
//	               file, and serve-peak-MB its maximum
type comparison struct {
	serve *program
	floor string   // name of the floor
	hop   *program // process of the floor
	// callers returns clients of a route: 0 is direct, 1 the floor, 2 serve.
	callers func(b *testing.B, route, size, inFlight int) []func() error
}

func (c comparison) run(b *testing.B, name string, sizes ...int) {
	for _, size := range sizes {
		for _, inFlight := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/%dB/%d", name, size, inFlight), func(b *testing.B) { c.measure(b, size, inFlight) })
		}
	}
}

func (c comparison) measure(b *testing.B, size, inFlight int) {
	var callers [3][]func() error
	for i := range callers {
		callers[i] = c.callers(b, i, size, inFlight)
		turns(b, callers[i], 20*time.Millisecond) // warm up
	}
	var rate, p50 [3][]float64
	var served []time.Duration
	programs := [3]*program{1: c.hop, 2: c.serve}
	var cpu [3]time.Duration
	var calls [3]int
	for n := 0; b.Loop(); n++ {
		for k := range callers {
			i := (n + k) % len(callers)
			var before time.Duration
			if programs[i] != nil {
				before = programs[i].cpu(b)
			}
			took, times := turns(b, callers[i], turn)
			rate[i] = append(rate[i], float64(len(times))/took.Seconds())
			slices.Sort(times)
			p50[i] = append(p50[i], float64(times[len(times)/2]))
			if programs[i] != nil {
				cpu[i] += programs[i].cpu(b) - before
				calls[i] += len(times)
			}
			if i == 2 {
				served = append(served, times...)
			}
		}
	}
	slices.Sort(served)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(middle(rate[0]), "direct/s")
	b.ReportMetric(middle(p50[0])/1e3, "direct-p50-us")
	b.ReportMetric(middle(ratios(rate[1], rate[0])), c.floor)
	b.ReportMetric(middle(ratios(rate[2], rate[0])), "serve")
	b.ReportMetric(middle(ratios(p50[1], p50[0])), c.floor+"-p50x")
	b.ReportMetric(middle(ratios(p50[2], p50[0])), "serve-p50x")
	b.ReportMetric(float64(served[len(served)*99/100])/1e3, "serve-p99-us")
	b.ReportMetric(float64(cpu[1])/float64(max(1, calls[1]))/1e3, c.floor+"-cpu-us")
	b.ReportMetric(float64(cpu[2])/float64(calls[2])/1e3, "serve-cpu-us")
	b.ReportMetric(c.serve.memory(b, "VmRSS"), "serve-rss-MB")
	b.ReportMetric(c.serve.memory(b, "RssAnon"), "serve-anon-MB")
	b.ReportMetric(c.serve.memory(b, "VmHWM"), "serve-peak-MB")
}

// turn is how long one route is used before the next one.
const turn = 50 * time.Millisecond

// turns lets every caller make calls for a time d. It returns the total time and the time of each call.
func turns(b *testing.B, callers []func() error, d time.Duration) (took time.Duration, times []time.Duration) {
	b.Helper()
	each := make([][]time.Duration, len(callers))
	began := time.Now()
	var all sync.WaitGroup
	for i, c := range callers {
		all.Go(func() {
			for start := began; start.Sub(began) < d; {
				if err := c(); err != nil {
					b.Error(err)
					return
				}
				now := time.Now()
				each[i] = append(each[i], now.Sub(start))
				start = now
			}
		})
	}
	all.Wait()
	took = time.Since(began)
	if b.Failed() {
		b.FailNow()
	}
	return took, slices.Concat(each...)
}

// ratios divides the figures of each turn.
func ratios(a, b []float64) []float64 {
	r := make([]float64, min(len(a), len(b)))
	for i := range r {
		r[i] = a[i] / b[i]
	}
	return r
}

func middle(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

// BenchmarkColdStart measures the time from the start of a program over stdin and stdout to its first response to
// tools/list. The programs are toolctl serve with 1,000 Tool manifests, an MCP server alone, and toolctl serve with
// that server as its only upstream.
func BenchmarkColdStart(b *testing.B) {
	bin := buildToolctl(b)
	many, one := b.TempDir(), b.TempDir()
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, "---\napiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: tool-%d, labels: {team: t%d}}\nspec:\n  description: Looks number %[1]d up\n  input_schema:\n    type: object\n    properties:\n      id: {type: string, minLength: 1, description: The id}\n      limit: {type: integer, minimum: 1, maximum: 100}\n    required: [id]\n  output_schema: {type: object, properties: {ok: {type: boolean}}, required: [ok]}\n  mock_result: {ok: true}\n", i, i%10)
	}
	writeFile(b, filepath.Join(many, "tools.yaml"), text.String())
	writeFile(b, filepath.Join(one, "server.yaml"), fmt.Sprintf("apiVersion: toolctl.dev/v1\nkind: MCPServer\nmetadata: {name: echo}\nspec: {command: %q, tool_names: bare}\n", linked(b, "echo-stdio")))
	serve := func(dir string) func() *exec.Cmd {
		return func() *exec.Cmd { return command(bin, "serve", "-f", dir) }
	}
	var alone float64
	for _, c := range []struct {
		name  string
		start func() *exec.Cmd
		tools int
	}{
		{"tools1000", serve(many), 1000},
		{"upstream-alone", func() *exec.Cmd { return again(b, "echo-stdio") }, 1},
		{"upstream-served", serve(one), 1},
	} {
		b.Run(c.name, func(b *testing.B) {
			var times []float64
			for b.Loop() {
				times = append(times, firstList(b, c.start(), c.tools).Seconds()*1e3)
			}
			ms := middle(times)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(ms, "ms")
			switch c.name {
			case "upstream-alone":
				alone = ms
			case "upstream-served":
				b.ReportMetric(ms-alone, "more-ms")
			}
		})
	}
}

// firstList starts an MCP server and returns the time until it has listed its tools.
func firstList(b *testing.B, cmd *exec.Cmd, tools int) time.Duration {
	b.Helper()
	began := time.Now()
	in, out := startPiped(b, cmd)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"cold","version":"1"}}}`)
	lines := bufio.NewReaderSize(out, 1<<20)
	if _, err := lines.ReadSlice('\n'); err != nil {
		b.Fatal(err)
	}
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	answer, err := lines.ReadSlice('\n')
	took := time.Since(began)
	if n := bytes.Count(answer, []byte(`"inputSchema"`)); err != nil || n != tools {
		b.Fatalf("%d tools, %v: %.300s", n, err, answer)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		b.Fatal(err)
	}
	return took
}
