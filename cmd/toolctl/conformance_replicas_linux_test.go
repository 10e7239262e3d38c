package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
)

// oneAfterTheOther starts a proxy that sends each request to the next process. It adds a token, because the suites
// have none.
func oneAfterTheOther(t *testing.T, all []*program) (address string, used func() int) {
	t.Helper()
	var next atomic.Int64
	var seen sync.Map
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			to, err := url.Parse(all[int(next.Add(1))%len(all)].url)
			body, berr := io.ReadAll(r.In.Body) // read it all, because a response may begin before the end of the request
			if err != nil || berr != nil {
				panic(http.ErrAbortHandler)
			}
			seen.Store(to.Host, true)
			r.Out.Body = io.NopCloser(bytes.NewReader(body))
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = to.Scheme, to.Host, r.In.Host // the suites check how servers handle Host
			r.Out.Header.Set("Authorization", "Bearer 1")
		},
	})
	t.Cleanup(proxy.Close)
	return proxy.URL + "/mcp", func() (n int) {
		seen.Range(func(any, any) bool { n++; return true })
		return n
	}
}

var scenarioLine = regexp.MustCompile(`(?m)^[✓✗] ([^: ]+): ([0-9]+) passed, ([0-9]+) failed`)

// TestConformanceOfReplicas checks that the official suites have the same results with three processes, each request
// at another process, as with one process, in both versions of the protocol.
func TestConformanceOfReplicas(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("TOOLCTL_MCP_CONFORMANCE")
	if dir == "" {
		t.Skip("TOOLCTL_MCP_CONFORMANCE is not set: run .ci/mcp-conformance, which needs Node, and set it to the folder that it prints")
	}
	everything := filepath.Join(t.TempDir(), "everything")
	if out, err := exec.Command("go", "build", "-o", everything, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s := launchSharing(t, newDatabase(t), `
apiVersion: toolctl.dev/v1
kind: MCPServer
metadata: {name: everything}
spec: {tool_names: bare, command: "`+everything+`"}
`, 4, "--principal-share", "1")
	for _, p := range s.all { // the server may start slowly
		untilState(t, p, "it has 5 tools", func(r readyState) bool { return r.Tools >= 5 })
	}
	three, used := oneAfterTheOther(t, s.all[:3])
	one, _ := oneAfterTheOther(t, s.all[3:])
	type counts struct{ passed, failed int }
	for name, args := range map[string][]string{
		"2025-11-25": {"--requirements", "2025-11-25"},
		"2026-07-28": {"--requirements", "2026-07-28"},
	} {
		var found [2]map[string]counts
		var texts [2][]byte
		var both sync.WaitGroup
		for i, at := range []string{one, three} {
			both.Go(func() {
				cmd := command(filepath.Join(dir, "node"), append([]string{filepath.Join(dir, "new/node_modules/@modelcontextprotocol/conformance/dist/index.js"), "server", "--url", at}, args...)...)
				cmd.Dir = t.TempDir()
				texts[i], _ = cmd.CombinedOutput() // the output shows the failures
				found[i] = map[string]counts{}
				for _, m := range scenarioLine.FindAllSubmatch(texts[i], -1) {
					passed, _ := strconv.Atoi(string(m[2]))
					failed, _ := strconv.Atoi(string(m[3]))
					found[i][string(m[1])] = counts{passed, failed}
				}
			})
		}
		both.Wait()
		checks := 0
		for scenario, want := range found[0] {
			got, ran := found[1][scenario]
			checks += got.passed
			if !ran || got.failed > want.failed {
				t.Errorf("%s, %s: %+v through three, %+v through one", name, scenario, got, want)
			} else if got.passed < want.passed { // a warning, which the suites do not count as a failure
				t.Logf("%s, %s: %+v through three, %+v through one", name, scenario, got, want)
			}
		}
		if len(found[0]) < 30 || len(found[1]) != len(found[0]) || checks == 0 {
			t.Errorf("%s: %d scenarios through one and %d through three: %s", name, len(found[0]), len(found[1]), texts[1])
		}
		t.Logf("%s: %d scenarios, %d checks passed", name, len(found[1]), checks)
	}
	if n := used(); n != 3 {
		t.Errorf("%d processes were asked", n)
	}
}
