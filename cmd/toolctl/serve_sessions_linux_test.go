package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"toolctl.dev/toolctl/internal/until"
)

const (
	replicaKey  = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n"
	replicaKey2 = "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100\n"
)

// sharing has serve processes that share a key, behind a proxy that sends each request to the next process.
type sharing struct {
	dsn   string
	args  []string // flags of each process
	all   []*program
	proxy string
	next  atomic.Int64
	used  sync.Map // addresses of the processes that responded
}

func launchSharing(t *testing.T, dsn string, manifests string, n int, flags ...string) *sharing {
	t.Helper()
	if raceDetector {
		t.Skip("three gateways are ten times slower under the race detector; pkg/replica's own tests run under it")
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "all.yaml"), manifests)
	writeFile(t, filepath.Join(dir, "tokens"), tokenLine("ann", "1")+tokenLine("bob", "2"))
	writeFile(t, filepath.Join(dir, "key"), replicaKey)
	toolctl(t, exitOK, "apply", "-f", filepath.Join(dir, "all.yaml"), "--set", "main", "--store", dsn)
	s := &sharing{dsn: dsn}
	s.args = append([]string{"--store", dsn, "--watch", "--token-file", filepath.Join(dir, "tokens"), "--replica-key-file", filepath.Join(dir, "key"), "--shutdown-delay", "0s", "--drain-timeout", "2s", "--allow-command=*"}, flags...)
	for range n {
		s.all = append(s.all, launchServe(t, again(t, "toolctl"), s.args...))
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			to, err := url.Parse(s.all[int(s.next.Add(1))%n].url)
			if err != nil {
				panic(err)
			}
			s.used.Store(to.Host, true)
			// A response that begins before the proxy has read the whole request would break its connection.
			body, err := io.ReadAll(r.In.Body)
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			r.Out.Body = io.NopCloser(bytes.NewReader(body))
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = to.Scheme, to.Host, to.Host
		},
	})
	t.Cleanup(proxy.Close)
	s.proxy = proxy.URL + "/mcp"
	return s
}

func askingManifest(t *testing.T, more string) string {
	return `
apiVersion: toolctl.dev/v1
kind: MCPServer
metadata: {name: up}
spec: {command: "` + linked(t, "asking-stdio") + `"` + more + `}
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: pay}
spec: {description: Pay, input_schema: {type: object}, mock_result: {paid: true}}
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: careful}
spec: {require_approval: [pay], approvers: {ask: client}}
`
}

// asBearer adds a token to every request.
type asBearer struct{ token string }

func (b asBearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

// TestSharedSessions checks that a client behind a proxy without session affinity gets all questions and notifications
// that a client of a single process gets, in both versions of the protocol.
func TestSharedSessions(t *testing.T) {
	s := launchSharing(t, newDatabase(t), askingManifest(t, ""), 3)
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			s.used.Clear()
			var progress, forms atomic.Int64
			o := &sdk.ClientOptions{
				ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
					forms.Add(1)
					return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"city": "Oslo", "approve": true}}, nil
				},
				CreateMessageHandler: func(context.Context, *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) {
					return &sdk.CreateMessageResult{Model: "m", Role: "assistant", Content: &sdk.TextContent{Text: "rain"}}, nil
				},
				ProgressNotificationHandler: func(context.Context, *sdk.ProgressNotificationClientRequest) { progress.Add(1) },
			}
			cs, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o).Connect(t.Context(),
				&sdk.StreamableClientTransport{Endpoint: s.proxy, HTTPClient: &http.Client{Transport: asBearer{"1"}}}, &sdk.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			const calls = 9
			for i := range calls {
				params := &sdk.CallToolParams{Name: "up__ask"}
				params.SetProgressToken(fmt.Sprint("p", i))
				res, err := cs.CallTool(t.Context(), params)
				if err != nil {
					t.Fatal(err)
				}
				if text := res.Content[0].(*sdk.TextContent).Text; !strings.Contains(text, "city Oslo, weather rain") {
					t.Errorf("got %s", text)
				}
			}
			began := time.Now()
			res, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "pay"})
			if err != nil || res.IsError {
				t.Errorf("a call that its client approves: %v, %v", res, err)
			}
			t.Logf("a call that its client approves took %s", time.Since(began))
			if forms.Load() != calls+1 || progress.Load() != calls {
				t.Errorf("%d forms and %d reports, want %d and %d", forms.Load(), progress.Load(), calls+1, calls)
			}
			if err := cs.Close(); err != nil {
				t.Error(err)
			}
			n := 0
			s.used.Range(func(any, any) bool { n++; return true })
			if n != len(s.all) {
				t.Errorf("%d processes were asked", n)
			}
		})
	}
}

// bareClient is a client that sends raw requests.
type bareClient struct {
	t                    *testing.T
	token, session, meta string // meta is for requests of 2026-07-28; empty for older ones
}

const (
	formsOnly = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"w","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}`
	opening   = `{"protocolVersion":"2025-11-25","clientInfo":{"name":"w","version":"1"},"capabilities":{"elicitation":{}}}`
)

func (w *bareClient) send(at, verb, method, name, params string) *http.Response {
	w.t.Helper()
	var body io.Reader
	if verb == http.MethodPost {
		if w.meta != "" {
			params = `{"_meta":{` + w.meta + `},` + strings.TrimPrefix(params, "{")
		}
		body = strings.NewReader(`{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":` + params + `}`)
	}
	req, err := http.NewRequestWithContext(w.t.Context(), verb, at, body)
	if err != nil {
		w.t.Fatal(err)
	}
	h := map[string]string{"Accept": "application/json, text/event-stream", "Content-Type": "application/json", "Authorization": "Bearer " + w.token, "Mcp-Protocol-Version": "2025-11-25"}
	if w.session != "" {
		h["Mcp-Session-Id"] = w.session
	}
	if w.meta != "" {
		h["Mcp-Protocol-Version"], h["Mcp-Method"], h["Mcp-Name"] = "2026-07-28", method, name
	}
	for k, v := range h {
		req.Header.Set(k, v)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	return res
}

// read returns the status and the body of a response.
func read(t *testing.T, res *http.Response) (int, string) {
	t.Helper()
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(raw)
}

func (w *bareClient) post(at, method, name, params string) (int, string) {
	w.t.Helper()
	return read(w.t, w.send(at, http.MethodPost, method, name, params))
}

// open begins a session of 2025-11-25.
func (w *bareClient) open(at string) {
	w.t.Helper()
	res := w.send(at, http.MethodPost, "initialize", "", opening)
	w.session = res.Header.Get("Mcp-Session-Id")
	if status, body := read(w.t, res); status != http.StatusOK || w.session == "" || len(w.session) > 200 {
		w.t.Fatal(status, body, w.session)
	}
	res = w.send(at, http.MethodPost, "notifications/initialized", "", `{}`)
	res.Body.Close()
}

// heldState returns the requestState and the question in a body.
func heldState(t *testing.T, body string) (state, question string) {
	t.Helper()
	var m struct {
		Result struct {
			State    string                     `json:"requestState"`
			Requests map[string]json.RawMessage `json:"inputRequests"`
		}
	}
	if err := json.Unmarshal([]byte(body), &m); err != nil || m.Result.State == "" {
		t.Fatalf("no state: %s", body)
	}
	for name := range m.Result.Requests {
		question = name
	}
	return m.Result.State, question
}

const pingParams = `{}`

func TestSharedSessionsOfOthers(t *testing.T) {
	s := launchSharing(t, newDatabase(t), askingManifest(t, ""), 2)
	a, b := s.all[0].url, s.all[1].url
	ann := &bareClient{t: t, token: "1"}
	ann.open(a)
	if status, body := ann.post(b, "ping", "", pingParams); status != http.StatusOK || !strings.Contains(body, `"result":{}`) {
		t.Errorf("at another process: %d %s", status, body)
	}
	bob := &bareClient{t: t, token: "2", session: ann.session}
	for _, at := range []string{a, b} {
		if status, body := bob.post(at, "ping", "", pingParams); status != http.StatusForbidden {
			t.Errorf("the session of another principal: %d %s", status, body)
		}
		if status, body := bob.post(at, "tools/call", "", `{"name":"up__process","arguments":{}}`); status != http.StatusForbidden {
			t.Errorf("a call in the session of another principal: %d %s", status, body)
		}
	}
	for name, id := range map[string]string{
		"altered": "A" + ann.session[1:], "cut": ann.session[:40], "long": strings.Repeat("A", 500), "not ours": "HDWQ3VZEBJ2H5XGRNBQ3OGJR4Y", "empty in Base64": "====",
	} {
		for _, verb := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
			forged := &bareClient{t: t, token: "1", session: id}
			if status, body := read(t, forged.send(b, verb, "ping", "", pingParams)); status != http.StatusNotFound {
				t.Errorf("%s, %s: %d %s", name, verb, status, body)
			}
		}
	}
	// The owner has the stream of the session, and ends it.
	stream := ann.send(b, http.MethodGet, "", "", "")
	if stream.StatusCode != http.StatusOK || stream.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("the stream: %d", stream.StatusCode)
	}
	ended := make(chan error, 1)
	go func() { _, err := io.Copy(io.Discard, stream.Body); stream.Body.Close(); ended <- err }()
	if status, body := read(t, ann.send(b, http.MethodDelete, "", "", "")); status != http.StatusNoContent {
		t.Errorf("DELETE: %d %s", status, body)
	}
	<-ended
	for _, at := range []string{a, b} {
		if status, _ := ann.post(at, "ping", "", pingParams); status != http.StatusNotFound {
			t.Errorf("after DELETE: %d", status)
		}
	}
	// Every process binds a state to its principal and its request.
	ann = &bareClient{t: t, token: "1", meta: formsOnly}
	_, body := ann.post(a, "tools/call", "pay", `{"name":"pay","arguments":{}}`)
	state, question := heldState(t, body)
	if len(state) > 200 {
		t.Errorf("a state of %d bytes", len(state))
	}
	with := func(state, args string) string {
		return `{"name":"pay","arguments":` + args + `,"requestState":"` + state + `","inputResponses":{"` + question + `":{"action":"accept","content":{"approve":true}}}}`
	}
	bob = &bareClient{t: t, token: "2", meta: formsOnly}
	for name, try := range map[string]func() (int, string){
		"another principal": func() (int, string) { return bob.post(b, "tools/call", "pay", with(state, "{}")) },
		"another request":   func() (int, string) { return ann.post(b, "tools/call", "pay", with(state, `{"a":1}`)) },
		"altered":           func() (int, string) { return ann.post(b, "tools/call", "pay", with("A"+state[1:], "{}")) },
		"a session id":      func() (int, string) { return ann.post(b, "tools/call", "pay", with(bob.session, "{}x")) },
	} {
		if status, body := try(); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	began := time.Now()
	if status, body := ann.post(b, "tools/call", "pay", with(state, "{}")); status != http.StatusOK || !strings.Contains(body, `"paid":true`) {
		t.Errorf("%d %s", status, body)
	}
	t.Logf("an approval given at one process let the call at the other go on in %s", time.Since(began))
	for _, p := range s.all {
		if text, err := os.ReadFile(p.logs); err != nil || bytes.Contains(text, []byte(state)) || bytes.Contains(text, []byte(strings.TrimSpace(replicaKey))) {
			t.Errorf("the log has a state or the key: %v", err)
		}
	}
}

// TestOwnerKilled checks that the other processes respond at once for a killed process.
func TestOwnerKilled(t *testing.T) {
	s := launchSharing(t, newDatabase(t), askingManifest(t, ""), 3)
	a, b := s.all[0].url, s.all[1].url
	older, newer := &bareClient{t: t, token: "1"}, &bareClient{t: t, token: "1", meta: formsOnly}
	older.open(a)
	_, body := newer.post(a, "tools/call", "pay", `{"name":"pay","arguments":{}}`)
	state, question := heldState(t, body)
	// The call is running when its form has arrived.
	call := older.send(b, http.MethodPost, "tools/call", "", `{"name":"pay","arguments":{}}`)
	defer call.Body.Close()
	events := bufio.NewScanner(call.Body)
	for events.Scan() && !strings.Contains(events.Text(), "elicitation/create") {
	}
	if err := s.all[0].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	text := ""
	for events.Scan() {
		text += events.Text()
	}
	// Its connections close before its port does, so the other process may not know yet that it has ended.
	if !strings.Contains(text, `"id":7`) || !strings.Contains(text, "the replica that made the call ") || !strings.Contains(text, "the tool may have run") {
		t.Errorf("the stream of the call ended with %q, %v", text, events.Err())
	}
	t.Logf("the call that was under way ended after %s", time.Since(began))
	_ = s.all[0].Wait()
	for name, try := range map[string]func() (int, string){
		"POST": func() (int, string) { return older.post(b, "ping", "", pingParams) },
		"call": func() (int, string) {
			return older.post(s.all[2].url, "tools/call", "", `{"name":"pay","arguments":{}}`)
		},
		"GET":    func() (int, string) { return read(t, older.send(b, http.MethodGet, "", "", "")) },
		"DELETE": func() (int, string) { return read(t, older.send(b, http.MethodDelete, "", "", "")) },
	} {
		began := time.Now()
		if status, body := try(); status != http.StatusNotFound || !strings.Contains(body, "session not found") {
			t.Errorf("%s: %d %s", name, status, body)
		}
		t.Logf("%s answered after %s", name, time.Since(began))
	}
	began = time.Now()
	status, body := newer.post(b, "tools/call", "pay", `{"name":"pay","arguments":{},"requestState":"`+state+`","inputResponses":{"`+question+`":{"action":"accept","content":{"approve":true}}}}`)
	if status != http.StatusBadRequest || !strings.Contains(body, "the replica that held its call has ended, and the call with it: send the request again without it") {
		t.Errorf("%d %s", status, body)
	}
	t.Logf("the state was answered after %s", time.Since(began))
	older = &bareClient{t: t, token: "1"}
	older.open(b)
	if status, _ := older.post(s.all[2].url, "ping", "", pingParams); status != http.StatusOK {
		t.Errorf("a new session: %d", status)
	}
}

// readyState is the report of a process about itself and its neighbours.
type readyState struct {
	Ready      bool
	Tools      int
	Replica    string
	Store      struct{ State string }
	Neighbours []struct{ Replica, State string }
}

func readyOf(t *testing.T, p *program) (r readyState) {
	t.Helper()
	res, err := http.Get(strings.TrimSuffix(p.url, "/mcp") + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

// untilState waits until ok returns true for the report of a process.
func untilState(t *testing.T, p *program, want string, ok func(readyState) bool) {
	t.Helper()
	until.NoError(t, func() error {
		if r := readyOf(t, p); !ok(r) {
			return fmt.Errorf("expected that %s: %+v", want, r)
		}
		return nil
	})
}

// untilDraining waits until a process has noticed that the only other process is stopping.
func untilDraining(t *testing.T, p *program) {
	t.Helper()
	untilState(t, p, "the neighbour drains", func(r readyState) bool { return len(r.Neighbours) != 1 || r.Neighbours[0].State == "draining" })
}

func untilReady(t *testing.T, p *program) {
	t.Helper()
	untilState(t, p, "it is ready", func(r readyState) bool { return r.Ready })
}

// TestReplicaDrains checks that a stopping process returns its lease, lets calls end, also for clients of other
// processes, and gives up its sessions at once.
func TestReplicaDrains(t *testing.T) {
	t.Parallel()
	s := launchSharing(t, newDatabase(t), askingManifest(t, ""), 2)
	b := s.all[1]
	untilState(t, b, "the neighbour is seen", func(r readyState) bool {
		return r.Ready && r.Replica != "" && r.Store.State == "reachable" && len(r.Neighbours) == 1 && r.Neighbours[0].State == "ready" && r.Neighbours[0].Replica != r.Replica
	})
	w := &bareClient{t: t, token: "1"}
	w.open(s.all[0].url)
	if err := s.all[0].Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := s.all[0].Wait(); err != nil {
		t.Error(err)
	}
	untilState(t, b, "the lease is back", func(r readyState) bool { return len(r.Neighbours) == 0 })
	if status, body := w.post(b.url, "ping", "", pingParams); status != http.StatusNotFound {
		t.Errorf("%d %s", status, body)
	}
}

// TestReplicaKeysChange replaces the keys step by step while clients make calls.
func TestReplicaKeysChange(t *testing.T) {
	t.Parallel()
	s := launchSharing(t, newDatabase(t), askingManifest(t, ""), 2)
	key := ""
	for i, arg := range s.all[0].Args {
		if arg == "--replica-key-file" {
			key = s.all[0].Args[i+1]
		}
	}
	set := func(text string) {
		t.Helper()
		next := key + ".next"
		writeFile(t, next, text)
		if err := os.Rename(next, key); err != nil {
			t.Fatal(err)
		}
		for _, p := range s.all {
			until.NoError(t, func() error {
				log, err := os.ReadFile(p.logs)
				if err == nil && !bytes.Contains(log, []byte("the keys of the replicas changed")) {
					err = fmt.Errorf("the keys did not change: %s", log)
				}
				return err
			})
			if err := os.Truncate(p.logs, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	old := &bareClient{t: t, token: "1"}
	old.open(s.all[0].url)
	check := func(w *bareClient, want int) {
		t.Helper()
		for _, p := range s.all {
			if status, body := w.post(p.url, "ping", "", pingParams); status != want {
				t.Errorf("%d %s", status, body)
			}
		}
	}
	check(old, http.StatusOK)
	set(replicaKey + replicaKey2)
	check(old, http.StatusOK)
	set(replicaKey2 + replicaKey)
	check(old, http.StatusOK)
	fresh := &bareClient{t: t, token: "1"}
	fresh.open(s.all[1].url)
	check(fresh, http.StatusOK)
	set(replicaKey2)
	check(fresh, http.StatusOK)
	check(old, http.StatusNotFound)
}

// TestApprovalElsewhere checks that a call that waits at one process continues when another process records the
// decision.
func TestApprovalElsewhere(t *testing.T) {
	dsn := newDatabase(t)
	s := launchSharing(t, dsn, askingManifest(t, ""), 2, "--approval-wait", "5m")
	ann := &bareClient{t: t, token: "1"} // a client without forms
	open := func() {
		res := ann.send(s.all[0].url, http.MethodPost, "initialize", "", strings.Replace(opening, `{"elicitation":{}}`, "{}", 1))
		ann.session = res.Header.Get("Mcp-Session-Id")
		res.Body.Close()
		ann.send(s.all[0].url, http.MethodPost, "notifications/initialized", "", "{}").Body.Close()
	}
	open()
	for verb, want := range map[string]string{"approve": `"paid":true`, "deny": "denied by eve"} {
		answer := make(chan string, 1)
		go func() {
			_, body := ann.post(s.all[1].url, "tools/call", "", `{"name":"pay","arguments":{"how":"`+verb+`"}}`)
			answer <- body
		}()
		id := ""
		for id == "" {
			var out, errs bytes.Buffer
			if code := run(t.Context(), []string{"approvals", "list", "-o", "json", "--store", dsn}, strings.NewReader(""), &out, &errs); code != exitOK {
				t.Fatal(errs.String())
			}
			for _, part := range strings.Split(out.String(), `"id": "`)[1:] {
				if before, _, _ := strings.Cut(part, "}"); strings.Contains(part, verb) && strings.Contains(before, "pending") {
					id, _, _ = strings.Cut(part, `"`)
				}
			}
		}
		runQuiet(t, "approvals", verb, id, "--as", "eve", "--store", dsn)
		began := time.Now()
		if body := <-answer; !strings.Contains(body, want) {
			t.Errorf("%s: %s", verb, body)
		}
		t.Logf("%s: the call went on after %s", verb, time.Since(began))
	}
	// A stopping process does not wait for a decision.
	answer := make(chan string, 1)
	go func() {
		_, body := ann.post(s.all[0].url, "tools/call", "", `{"name":"pay","arguments":{"how":"never"}}`)
		answer <- body
	}()
	for seen := false; !seen; {
		var out, errs bytes.Buffer
		run(t.Context(), []string{"approvals", "list", "-o", "json", "--store", dsn}, strings.NewReader(""), &out, &errs)
		seen = strings.Contains(out.String(), "never")
	}
	if err := s.all[0].Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if body := <-answer; !strings.Contains(body, "toolctl approvals approve") {
		t.Errorf("a call that waits at a process that stops: %s", body)
	}
}

// TestRateElsewhere checks that a principal has one rate across all processes.
func TestRateElsewhere(t *testing.T) {
	t.Parallel()
	s := launchSharing(t, newDatabase(t), askingManifest(t, ""), 3, "--rate-limit", "20/h", "--rate-burst", "20")
	ann := &bareClient{t: t, token: "1", meta: formsOnly}
	got := map[int]int{}
	for range 14 {
		for _, p := range s.all {
			status, _ := ann.post(p.url, "tools/list", "", `{"cursor":""}`)
			got[status]++
		}
	}
	if got[http.StatusOK] != 20 || got[http.StatusTooManyRequests] != 22 {
		t.Errorf("got %v, want 20 requests and 22 refused", got)
	}
	bob := &bareClient{t: t, token: "2", meta: formsOnly}
	if status, body := bob.post(s.all[0].url, "tools/list", "", `{"cursor":""}`); status != http.StatusOK {
		t.Errorf("another principal: %d %s", status, body)
	}
}
