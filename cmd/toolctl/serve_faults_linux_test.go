package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// soak returns how long the long forms of the tests below run, such as 60s. By default they are short.
func soak(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("TOOLCTL_SOAK")
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal("TOOLCTL_SOAK:", err)
	}
	return d
}

// connect returns a client with its own connections.
func connect(t testing.TB, at, version string) *sdk.ClientSession {
	t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	cs, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(context.Background(),
		&sdk.StreamableClientTransport{Endpoint: at, HTTPClient: &http.Client{Transport: transport}, DisableStandaloneSSE: true},
		&sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cs.Close(); transport.CloseIdleConnections() })
	return cs
}

// TestServeFaults checks that upstreams that die, hang, flood, send broken JSON or change their tools affect no call
// of another upstream, and that each of their calls gets a response.
func TestServeFaults(t *testing.T) {
	clients, rounds, floodMB := 12, 3, 80
	long := soak(t)
	if long > 0 {
		clients, rounds, floodMB = 100, 1<<30, 1024
	}
	t.Setenv("FLOOD_MB", strconv.Itoa(floodMB))
	faulty := launch(t, again(t, "faulty-http"))
	changing := launch(t, again(t, "changing-upstream"))
	good := launch(t, again(t, "echo-upstream"))
	dir := t.TempDir()
	var text strings.Builder
	server := func(name, spec string) {
		fmt.Fprintf(&text, "---\napiVersion: toolctl.dev/v1\nkind: MCPServer\nmetadata: {name: %s}\nspec: {%s}\n", name, spec)
	}
	server("good", "url: "+quoted(good.url+"/sessions"))
	server("modern", "url: "+quoted(good.url+"/modern"))
	server("changing", "url: "+quoted(changing.url))
	var tools []string
	for _, kind := range []string{"die", "hang", "broken", "flood"} {
		server("web-"+kind, "timeout_ms: 700, url: "+quoted(faulty.url+"/"+kind))
		server("pipe-"+kind, "timeout_ms: 700, env_passthrough: [FLOOD_MB], command: "+quoted(linked(t, "faulty-stdio"))+", args: ["+kind+"]")
		tools = append(tools, "web-"+kind+"__"+kind, "pipe-"+kind+"__"+kind)
	}
	writeFile(t, filepath.Join(dir, "servers.yaml"), text.String())
	s := launchServe(t, again(t, "toolctl"), "-f", dir)

	var answered, refused atomic.Int64
	counts := map[string]*[2]atomic.Int64{}
	for _, name := range tools {
		counts[name] = new([2]atomic.Int64)
	}
	var sound sync.WaitGroup
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	call := func(cs *sdk.ClientSession, name string, args any) (*sdk.CallToolResult, error) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		return cs.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: args})
	}
	session := func(i int) *sdk.ClientSession { return connect(t, s.url, versions[i%len(versions)].version) }
	began := time.Now()
	// These clients call healthy upstreams until the others are done.
	var slowest atomic.Int64
	for i := range clients {
		cs := session(i)
		sound.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				start := time.Now()
				name := []string{"good__echo", "modern__echo", "changing__echo"}[n%3]
				res, err := call(cs, name, map[string]any{"size": 200})
				if err != nil || res.IsError {
					t.Errorf("%s was disturbed: %v %s", name, err, textOf(res))
					return
				}
				for took := int64(time.Since(start)); ; {
					if old := slowest.Load(); took <= old || slowest.CompareAndSwap(old, took) {
						break
					}
				}
				answered.Add(1)
			}
		})
	}
	var unsound sync.WaitGroup
	for i, name := range tools {
		cs := session(i)
		unsound.Go(func() {
			for n := range rounds {
				if long > 0 && time.Since(began) > long || strings.HasSuffix(name, "flood") && n > 1 {
					return
				}
				res, err := call(cs, name, nil)
				var answer *jsonrpc.Error
				switch {
				case err == nil && res.IsError && textOf(res) != "":
					counts[name][0].Add(1)
				case err == nil:
					t.Errorf("%s succeeded: %.200s", name, textOf(res))
				case errors.As(err, &answer):
					counts[name][1].Add(1)
				default:
					t.Errorf("%s got no answer: %v", name, err)
					return
				}
				refused.Add(1)
			}
		})
	}
	unsound.Wait()
	stop()
	sound.Wait()
	peak := s.memory(t, "VmHWM")
	t.Logf("%d clients of sound upstreams: %d calls, all answered, the slowest in %s; %d calls of unsound ones, each answered with an error; memory at most %.0f MB, %.0f MB at the end; %s",
		clients, answered.Load(), time.Duration(slowest.Load()).Round(time.Millisecond), refused.Load(), peak, s.memory(t, "RssAnon"), time.Since(began).Round(time.Millisecond))
	if n := answered.Load(); n < int64(clients) {
		t.Errorf("only %d calls of sound upstreams", n)
	}
	for _, name := range tools {
		if n := counts[name]; n[0].Load()+n[1].Load() == 0 {
			t.Errorf("%s: no call was answered", name)
		}
	}
	if most := 1000.0; peak > most { // several copies of a message of at most 64 MiB, for two upstreams
		t.Errorf("%.0f MB of memory: expected at most %.0f", peak, most)
	}
}

func textOf(res *sdk.CallToolResult) string {
	if res == nil {
		return ""
	}
	for _, c := range res.Content {
		if text, ok := c.(*sdk.TextContent); ok {
			return text.Text
		}
	}
	return ""
}

// TestServeSoak runs many clients for a long time: there are no errors, the number of descriptors is bounded, and
// memory stays within its budget and does not grow.
func TestServeSoak(t *testing.T) {
	clients, d, long := 40, 2*time.Second, soak(t)
	if long > 0 {
		clients, d = 200, long
	}
	upstream := launch(t, again(t, "echo-upstream"))
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "hop.yaml"), fmt.Sprintf(hopPolicy, fmt.Sprintf("url: %q", upstream.url+"/sessions")))
	s := launchServe(t, again(t, "toolctl"), "-f", dir)
	var callers []*caller
	for i := range clients {
		w := openWire(t, s.url, versions[i%len(versions)].version) // a session for each client of the older protocol version
		size := []int{100, 1 << 10, 10 << 10}[i%3]
		callers = append(callers, newCaller(t, s.url, w.request(s.url, i, "echo", fmt.Sprintf(`{"size":%d}`, size))))
	}
	var calls, wrong atomic.Int64
	part := func(d time.Duration) (memory float64, files int) {
		var all sync.WaitGroup
		until := time.Now().Add(d)
		for _, c := range callers {
			all.Go(func() {
				for time.Now().Before(until) {
					if _, err := c.call(); err != nil {
						wrong.Add(1)
						t.Error(err)
						return
					}
					calls.Add(1)
				}
			})
		}
		all.Wait()
		return s.memory(t, "RssAnon"), s.files(t)
	}
	began := time.Now()
	early, filesEarly := part(d / 4)
	late, filesLate := part(d - d/4)
	t.Logf("%d clients for %s: %d calls, %d errors; memory %.1f MB after a quarter of the time, %.1f MB at the end, at most %.1f MB; %d and %d descriptors",
		clients, time.Since(began).Round(time.Second), calls.Load(), wrong.Load(), early, late, s.memory(t, "VmHWM"), filesEarly, filesLate)
	if most := 2*clients + 50; filesLate > most { // one connection for each client and one to the upstream
		t.Errorf("%d descriptors for %d clients", filesLate, clients)
	}
	if most := 20.0; long == 0 && !raceDetector && late > most {
		t.Errorf("%.1f MB of memory: expected at most %.0f", late, most)
	}
	if long > 0 && late > early*1.2+8 { // memory needs more than a moment to settle
		t.Errorf("memory grows: %.1f MB, then %.1f MB", early, late)
	}
}

// files counts the open descriptors of the process.
func (p *program) files(t testing.TB) int {
	t.Helper()
	list, err := os.ReadDir("/proc/" + strconv.Itoa(p.Process.Pid) + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
