package console_test

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/mcp/server"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/source"
)

// probes are requests without a rate limit.
var probes = []string{"GET /healthz", "GET /readyz"}

// toolsetX is at /mcp/x, as everyRoute asks for it.
const toolsetX = "---\napiVersion: toolctl.dev/v1\nkind: Toolset\nmetadata: {name: x}\nspec: {description: Everything}\n"

var wildcard = regexp.MustCompile(`\{[^}]*\}`)

// everyRoute calls f with a request for each route of the server.
func (s *site) everyRoute(f func(pattern, method, url string)) {
	s.t.Helper()
	patterns := s.gateway.Handler().(*admission.Routes).Patterns()
	if len(patterns) < 30 || !slices.Contains(patterns, "/mcp") || !slices.Contains(patterns, "POST /ui/sign-in") || !slices.Contains(patterns, source.HookPath) {
		s.t.Fatalf("the list lacks routes: %q", patterns)
	}
	for _, pattern := range patterns {
		method, path, ok := strings.Cut(pattern, " ")
		if !ok {
			method, path = http.MethodPost, pattern
		}
		f(pattern, method, strings.TrimSuffix(s.url, "/ui/")+wildcard.ReplaceAllString(strings.Replace(path, "{$}", "", 1), "x"))
	}
}

// do sends a request as a principal and returns the status and the text of the response.
func (s *site) do(method, url, as string, body io.Reader, headers ...string) (int, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, url, body)
	if err != nil {
		s.t.Fatal(err)
	}
	if as != "" {
		req.Header.Set("Authorization", "Bearer "+as)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := s.client.Transport.RoundTrip(req) // follows no redirects
	if err != nil {
		s.t.Fatal(method, url, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

const hookSecret = "0123456789abcdef0123456789abcdef"

// hooked returns the options of a server with a webhook.
func hooked(t *testing.T) server.HTTPOptions {
	hook, err := source.NewHook(hookSecret, func() {})
	if err != nil {
		t.Fatal(err)
	}
	return server.HTTPOptions{
		Routes: []admission.Route{{Pattern: source.HookPath, MaxBody: source.MaxDelivery, Unbuffered: true, Enter: admission.Open(hook)}},
		OAuth:  &server.OAuth{Issuer: "http://127.0.0.1:1", JWKSURL: "http://127.0.0.1:1/keys", Audiences: []string{"https://tools.example.com/mcp"}},
	}
}

// TestEveryRouteHasARate checks that every route refuses too frequent requests, with a valid token, an invalid one or
// none.
func TestEveryRouteHasARate(t *testing.T) {
	for _, as := range []string{"", "wrong", "ann"} {
		t.Run("token "+as, func(t *testing.T) {
			s := serve(t, options{manifests: heldPay + toolsetX, principals: []string{"ann"}, http: hooked(t), limits: admission.Limits{Rate: admission.Rate{PerSecond: 0.001, Burst: 3}}})
			for range 3 {
				s.do("POST", s.url+"sign-in", "", http.NoBody) // counts for the address
				s.do("GET", s.url+"api/tools", "ann", http.NoBody)
			}
			s.everyRoute(func(pattern, method, url string) {
				want := http.StatusTooManyRequests
				if slices.Contains(probes, pattern) {
					want = http.StatusOK
				}
				if code, text := s.do(method, url, as, http.NoBody); code != want {
					t.Errorf("%s: %d %.100s, want %d", pattern, code, text, want)
				}
			})
			if n := s.gateway.Admission().Snapshot().Refused["rate"]; n < 30 {
				t.Errorf("%d refusals were counted", n)
			}
		})
	}
}

// TestEveryRouteHasABodyLimit checks that no route reads more of a request than the limit.
func TestEveryRouteHasABodyLimit(t *testing.T) {
	const most = 2000
	s := serve(t, options{manifests: heldPay + toolsetX, principals: []string{"ann"}, http: hooked(t), limits: admission.Limits{MaxBody: most}})
	s.everyRoute(func(pattern, method, url string) {
		size := most
		switch {
		case pattern == source.HookPath: // reads nothing without a signature
		case strings.Contains(pattern, "/sign-in") || strings.Contains(pattern, "/sign-out"):
			size = 16 << 10
		case strings.Contains(pattern, ".well-known"):
			size = 64 << 10
		}
		for _, body := range []io.Reader{strings.NewReader(strings.Repeat("a", size+1)), io.MultiReader(strings.NewReader(strings.Repeat("a", size+1)))} { // with a length, and in chunks
			code, text := s.do(method, url, "ann", body, "Content-Type", "application/json", "Accept", "application/json, text/event-stream")
			if code != http.StatusRequestEntityTooLarge && pattern != source.HookPath || code == http.StatusAccepted {
				t.Errorf("%s: %d %.100s", pattern, code, text)
			}
		}
	})
}

// raw opens a connection and sends a part of a request.
func (s *site) raw(request string) (net.Conn, *bufio.Reader) {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/ui/"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	if _, err := fmt.Fprintf(conn, "%s", strings.ReplaceAll(request, "\n", "\r\n")); err != nil {
		s.t.Fatal(err)
	}
	return conn, bufio.NewReader(conn)
}

// TestSlowSignIns checks that unfinished sign-in forms of strangers use few resources and do not block others.
func TestSlowSignIns(t *testing.T) {
	s := serve(t, options{manifests: heldPay, principals: []string{"ann"}, http: hooked(t), limits: admission.Limits{MaxRequests: 64}}) // strangers get 8 of these requests, one address 2
	const form = "POST /ui/sign-in HTTP/1.1\nHost: localhost\nContent-Type: application/x-www-form-urlencoded\nContent-Length: %d\nExpect: 100-continue\n\n"
	answer := func(in *bufio.Reader) int {
		t.Helper()
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode
	}
	for range 20 {
		if _, in := s.raw(fmt.Sprintf(form, 2<<20)); answer(in) != http.StatusRequestEntityTooLarge {
			t.Fatal("a form of 2 MiB is read")
		}
	}
	read := 0
	for range 20 {
		conn, in := s.raw(fmt.Sprintf(form, 1000))
		switch code := answer(in); code {
		case http.StatusContinue:
			read++
			if _, err := conn.Write([]byte("token=")); err != nil {
				t.Fatal(err)
			}
		case http.StatusServiceUnavailable:
		default:
			t.Fatalf("status %d", code)
		}
	}
	if read != 2 {
		t.Errorf("%d forms of one address are read at once", read)
	}
	state := s.gateway.Admission().Snapshot()
	if used := state.Quotas["requests without a token"]; used.InUse != 2 || state.Refused["requests without a token"] != 18 || state.Memory.InUse > 1<<20 {
		t.Errorf("%+v", state)
	}
	if code, text := s.do("POST", s.url+"api/tools/default/look/call", "ann", strings.NewReader(`{}`)); code != http.StatusOK {
		t.Errorf("ann: %d %s", code, text)
	}
}

// TestUnfinishedDeliveries checks that unfinished webhook requests do not block others.
func TestUnfinishedDeliveries(t *testing.T) {
	s := serve(t, options{manifests: heldPay, http: hooked(t)})
	for range 4 {
		_, in := s.raw("POST /hooks/git HTTP/1.1\nHost: localhost\nX-Hub-Signature-256: sha256=" + strings.Repeat("0", 64) + "\nContent-Length: 10\nExpect: 100-continue\n\n")
		if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, "100") { // the server waits for the body
			t.Fatal(line, err)
		}
	}
	mac := hmac.New(sha256.New, []byte(hookSecret))
	mac.Write([]byte("{}"))
	code, text := s.do("POST", strings.TrimSuffix(s.url, "/ui/")+source.HookPath, "", strings.NewReader("{}"), "X-Hub-Signature-256", fmt.Sprintf("sha256=%x", mac.Sum(nil)))
	if code != http.StatusAccepted {
		t.Errorf("%d %s", code, text)
	}
}

// hanging is a tool whose calls wait. It counts the running calls.
type hanging struct {
	release       chan struct{}
	running, most atomic.Int64
}

func (h *hanging) tool() v1.Object {
	return registry.Func("hang", "Hangs.", func(ctx context.Context, _ struct{}) (struct{}, error) {
		n := h.running.Add(1)
		defer h.running.Add(-1)
		for m := h.most.Load(); n > m && !h.most.CompareAndSwap(m, n); m = h.most.Load() {
		}
		select {
		case <-h.release:
		case <-ctx.Done():
		}
		return struct{}{}, nil
	})
}

// TestCallsOfAllEntrances checks that calls through the console and through MCP share one limit, for each principal
// and in total.
func TestCallsOfAllEntrances(t *testing.T) {
	h := &hanging{release: make(chan struct{})}
	const all, each = 8, 2
	names := []string{"ann", "bob", "kim", "tom", "eve"}
	s := serve(t, options{manifests: heldPay, principals: names, objects: []v1.Object{h.tool()}, limits: admission.Limits{MaxCalls: all}})
	call := func(as string, mcp bool) (int, string) {
		if !mcp {
			return s.do("POST", s.url+"api/tools/default/hang/call", as, strings.NewReader(`{}`))
		}
		return s.do("POST", strings.TrimSuffix(s.url, "/ui/")+"/mcp", as, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hang","arguments":{},`+
			`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`),
			"Content-Type", "application/json", "Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "hang")
	}
	var mu sync.Mutex
	done, refused := map[string]int{}, 0
	var calls sync.WaitGroup
	ended := make(chan struct{})
	for _, as := range names {
		for i := range 2 * each {
			calls.Go(func() {
				code, text := call(as, i%2 == 0)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case strings.Contains(text, "try again later"):
					if i%2 == 1 && code != http.StatusServiceUnavailable {
						t.Errorf("the API: %d %s", code, text)
					}
					if refused++; refused == len(names)*2*each-all {
						close(ended)
					}
				case code == http.StatusOK:
					done[as]++
				default:
					t.Errorf("%d %s", code, text)
				}
			})
		}
	}
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Errorf("%d calls were refused", refused)
	}
	if used := s.gateway.Admission().Snapshot().Quotas["calls"]; used != (admission.Usage{InUse: all, Max: all}) {
		t.Errorf("%+v", used)
	}
	close(h.release)
	calls.Wait()
	if h.most.Load() != all {
		t.Errorf("%d calls ran at once", h.most.Load())
	}
	for as, n := range done {
		if n > each {
			t.Errorf("%s had %d calls at once", as, n)
		}
	}
}

// TestMemoryAndResultsOfTheConsole checks that data decoded by the console counts in the memory budget, and that its
// results have the general limit.
func TestMemoryAndResultsOfTheConsole(t *testing.T) {
	const big = "\n---\napiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: big}\nspec: {description: Big., input_schema: {type: object}, mock_result: {text: %s}}\n"
	s := serve(t, options{manifests: heldPay + fmt.Sprintf(big, strings.Repeat("x", 5000)), principals: []string{"ann"}, limits: admission.Limits{MemoryBudget: 8 << 20, MaxResultBytes: 1000}})
	// These 800 KB become 48 MB of maps or form values.
	for path, body := range map[string]string{
		"api/tools/default/look/call": `{"args":{"a":[` + strings.Repeat(`{},`, 200_000) + `{}]}}`,
		"tools/default/look/try":      strings.Repeat("a=&", 200_000),
	} {
		kind := "application/json"
		if strings.HasPrefix(body, "a=") {
			kind = "application/x-www-form-urlencoded"
		}
		if code, text := s.do("POST", s.url+path, "ann", strings.NewReader(body), "Content-Type", kind); code != http.StatusServiceUnavailable || !strings.Contains(text, "too large to decode") {
			t.Errorf("%s: %d %.200s", path, code, text)
		}
	}
	code, text := s.do("POST", s.url+"api/tools/default/big/call", "ann", strings.NewReader(`{}`))
	var res v1.Result
	if err := json.Unmarshal([]byte(text), &res); err != nil || code != http.StatusOK || res.Status != v1.StatusFailed || res.Error == nil || !strings.Contains(res.Error.Message, "exceeds the limit of 1000") || len(res.Content) > 0 {
		t.Errorf("%d %v %.300s", code, err, text)
	}
	code, text = s.do("POST", s.url+"tools/default/big/try", "ann", strings.NewReader("action=run"), "Content-Type", "application/x-www-form-urlencoded")
	if code != http.StatusOK || !strings.Contains(text, "exceeds the limit of 1000") || strings.Contains(text, strings.Repeat("x", 100)) {
		t.Errorf("%d %.300s", code, text)
	}
	if used := s.gateway.Admission().Snapshot().Memory.InUse; used != 0 {
		t.Errorf("%d bytes are not given back", used)
	}
}

// TestEventStreamsOfOnePrincipal checks that one principal cannot use up all event streams.
func TestEventStreamsOfOnePrincipal(t *testing.T) {
	s := serve(t, options{manifests: heldPay, principals: []string{"ann", "bob"}})
	open := func(as string) int {
		res := s.open("GET", "events", as, "")
		t.Cleanup(func() { _ = res.Body.Close() })
		return res.StatusCode
	}
	const each = 50
	for n := range each {
		if code := open("ann"); code != http.StatusOK {
			t.Fatalf("page %d: %d", n, code)
		}
	}
	if a, b := open("ann"), open("bob"); a != http.StatusServiceUnavailable || b != http.StatusOK {
		t.Errorf("one more of ann: %d; bob: %d", a, b)
	}
}
