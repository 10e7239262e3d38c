package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
)

func TestCallOverEveryTransport(t *testing.T) {
	stateful := serveHTTP(t, nil)
	stateless := serveHTTP(t, &sdk.StreamableHTTPOptions{Stateless: true})
	asJSON := serveHTTP(t, &sdk.StreamableHTTPOptions{JSONResponse: true})
	statelessJSON := serveHTTP(t, &sdk.StreamableHTTPOptions{JSONResponse: true, Stateless: true})
	old := serveSSE(t)
	sse := web("s", old.URL)
	sse.Spec.Transport = v1.TransportSSE
	tests := []struct {
		name      string
		server    *v1.MCPServer
		version   string
		transport string
		content   string
	}{
		{"stdio", stdio("s", "sdk"), "2026-07-28", "stdio", `{"n":12345678901234567890}`},
		{"stdio, slow start", stdio("s", "sdk:slow"), "2026-07-28", "stdio", `{"n":12345678901234567890}`},
		{"stdio, older handshake", stdio("s", "raw:plain"), "2025-06-18", "stdio", `12345678901234567890`},
		{"stdio, dies of server/discover", stdio("s", "oldschool"), "2025-06-18", "stdio", `12345678901234567890`},
		{"http with sessions", web("s", stateful.URL), "2025-11-25", "streamable_http", `{"n":12345678901234567890}`},
		{"http without sessions", web("s", stateless.URL), "2026-07-28", "streamable_http", `{"n":12345678901234567890}`},
		{"http with JSON", web("s", asJSON.URL), "2025-11-25", "streamable_http", `{"n":12345678901234567890}`},
		{"http with JSON without sessions", web("s", statelessJSON.URL), "2026-07-28", "streamable_http", `{"n":12345678901234567890}`},
		{"sse", sse, "", "sse", `{"n":12345678901234567890}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			u := open(t, mcp.Options{}, tt.server)
			if st, _ := u.State(key("s")); st.Ready || st.Reason != "not discovered yet" || st.Starts != 0 {
				t.Errorf("before the first use: %+v", st)
			}
			res, err := u.Call(t.Context(), key("s"), "echo", []byte(`{"n":12345678901234567890}`), false)
			if err != nil {
				t.Fatal(err)
			}
			if string(res.Content) != tt.content || res.Status != v1.StatusComplete || res.Attempts != 1 || len(res.Parts) != 1 {
				t.Errorf("got %+v", res)
			}
			st := u.Discover(t.Context())[0]
			if !st.Ready || st.Starts != 1 || st.Transport != tt.transport || tt.version != "" && st.ProtocolVersion != tt.version || len(st.Tools) == 0 {
				t.Errorf("state %+v", st)
			}
			if (st.PID > 0) != (tt.transport == "stdio") {
				t.Errorf("pid %d of a server over %s", st.PID, tt.transport)
			}
		})
	}
}

func TestASilentServerGetsTheOlderHandshake(t *testing.T) {
	// The raw server is connected through a pipe that swallows server/discover.
	u := open(t, mcp.Options{}, stdio("s", "raw:ignores"))
	s := stdio("s", "raw:ignores")
	s.Spec.ConnectTimeoutMS = 1000
	u.Replace([]*v1.MCPServer{s})
	if st := u.Discover(t.Context())[0]; !st.Ready || st.Starts != 1 || st.ProtocolVersion != "2025-06-18" {
		t.Errorf("got %+v", st)
	}
}

func TestDiscover(t *testing.T) {
	s := stdio("srv", "sdk")
	s.Metadata.Labels = map[string]string{"team": "a"}
	s.Spec.TimeoutMS = 5000
	no := false
	s.Spec.ToolFilter = &v1.ToolFilter{Allowlist: []string{"e*", "hang", "fail"}, Blocklist: []string{"env"}}
	s.Spec.Overrides = map[string]v1.ToolOverride{
		"echo":   {Description: "says it again", Hints: &v1.Hints{Destructive: &no}, InputSchema: json.RawMessage(`{"type":"object","required":["x"]}`), Redact: []string{"x"}, TimeoutMS: 7},
		"absent": {Description: "?"},
	}
	u := open(t, mcp.Options{}, s)
	st := u.Discover(t.Context())[0]
	if !st.Ready || st.ServerName != "test" || st.ServerVersion != "1.2.3" || st.Instructions != "be kind" || st.Latency <= 0 {
		t.Errorf("state %+v", st)
	}
	var names []string
	for _, d := range st.Tools {
		names = append(names, d.Tool.Metadata.Name)
		if d.Problem != "" || len(d.Tool.Violations) > 0 {
			t.Errorf("%s: %s", d.Remote, d.Problem)
		}
	}
	if want := []string{"srv__echo", "srv__fail", "srv__hang"}; !slices.Equal(names, want) {
		t.Fatalf("tools %v, want %v", names, want)
	}
	echo := st.Tools[0]
	want := v1.ToolSpec{Description: "says it again", Mode: v1.ModeMCP, MCP: &v1.MCPToolSpec{Server: "srv", Tool: "echo"}, TimeoutMS: 7,
		InputSchema: json.RawMessage(`{"type":"object","required":["x"]}`), Hints: &v1.Hints{Destructive: &no}, Redact: []string{"x"}}
	if diff := cmp.Diff(want, echo.Tool.Spec); diff != "" {
		t.Error(diff)
	}
	if echo.Description != "does echo" || string(echo.InputSchema) != `{"type":"object"}` || echo.Remote != "echo" {
		t.Errorf("what the server said was changed: %+v", echo)
	}
	if echo.Tool.Metadata.Labels["team"] != "a" || echo.Tool.Source.File != "mcpserver/srv" || st.Tools[1].Tool.Spec.TimeoutMS != 5000 {
		t.Errorf("tool %+v", echo.Tool)
	}
	if want := []string{`spec.overrides names the tool "absent", which the server does not offer`}; !slices.Equal(st.Warnings, want) {
		t.Errorf("warnings %q", st.Warnings)
	}
	if len(st.Prompts) != 1 || st.Prompts[0].Name != "greet" || !st.Prompts[0].Arguments[0].Required ||
		len(st.Resources) != 1 || st.Resources[0].MIMEType != "text/plain" || len(st.ResourceTemplates) != 1 || st.ResourceTemplates[0].URITemplate != "file:///{name}" {
		t.Errorf("prompts %v, resources %v, templates %v", st.Prompts, st.Resources, st.ResourceTemplates)
	}
}

func TestDiscoverBrokenTools(t *testing.T) {
	u := open(t, mcp.Options{}, stdio("s", "raw:broken"))
	st := u.Discover(t.Context())[0]
	problems := map[string]string{}
	for _, d := range st.Tools {
		problems[d.Remote] = d.Problem
		if (d.Problem == "") != (len(d.Tool.Violations) == 0) {
			t.Errorf("%s: problem %q and errors %v", d.Remote, d.Problem, d.Tool.Violations)
		}
	}
	want := map[string]string{
		"good": "", "readOnly": "",
		"array":     `the root type of an input schema must be "object" (MCP specification, server/tools)`,
		"none":      "the tool has no inputSchema",
		"bool":      "a JSON Schema must be an object, got boolean",
		"has space": `"s__has space" is not a legal name of a tool: expected 1 to 64 letters, digits, "_" and "-"`,
		"desc":      "the title or description of the tool is not a string",
		"hints":     `the annotations of the tool cannot be read: "\"x\""`,
		"twice":     `the server lists the tool "twice" twice`,
	}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Error(diff)
	}
	if !st.Ready {
		t.Errorf("the server is not ready: %s", st.Reason)
	}
	wantWarnings := []string{"tool 10 is left out: it has no name", "tool 11 is left out: it is not an object: \"7\"", "tool 12 is left out: it is not an object: \"null\""}
	if diff := cmp.Diff(wantWarnings, st.Warnings); diff != "" {
		t.Error(diff)
	}
	i := slices.IndexFunc(st.Tools, func(d mcp.DiscoveredTool) bool { return d.Remote == "readOnly" })
	if h := st.Tools[i].Tool.Spec.Hints; h.Title != "Read" || !h.Retryable() || st.Tools[i].Tool.Spec.Description != "Read" {
		t.Errorf("hints %+v", h)
	}
}

func TestSchemasKeepTheirBytes(t *testing.T) {
	u := open(t, mcp.Options{}, stdio("s", "raw:plain"))
	got := string(u.Discover(t.Context())[0].Tools[0].Tool.Spec.InputSchema)
	if want := `{"type":"object","properties":{"z":{"type":"integer","maximum":12345678901234567890},"a":{}}}`; got != want {
		t.Errorf("got %s", got)
	}
}

func TestPagesAreBounded(t *testing.T) {
	for role, want := range map[string]string{"raw:loop": `the cursor "again" of page 2 occurred before`, "raw:endless": "more than 200 pages"} {
		t.Run(role, func(t *testing.T) {
			st := open(t, mcp.Options{}, stdio("s", role)).Discover(t.Context())[0]
			if !st.Ready || len(st.Tools) == 0 || len(st.Warnings) != 1 || !strings.Contains(st.Warnings[0], want) {
				t.Errorf("%d tools, warnings %q, reason %s", len(st.Tools), st.Warnings, st.Reason)
			}
		})
	}
}

func TestErrorsShowNoQueryOfTheURL(t *testing.T) {
	s := web("s", "http://user:p4ssw0rd@127.0.0.1:1/mcp?key=l1teral%20secret&flag")
	st := open(t, mcp.Options{}, s).Discover(t.Context())[0]
	if st.Ready || !strings.Contains(st.Reason, "127.0.0.1:1") {
		t.Errorf("ready %v: %s", st.Ready, st.Reason)
	}
	for _, secret := range []string{"p4ssw0rd", "l1teral"} {
		if strings.Contains(st.Reason, secret) {
			t.Errorf("%q is shown: %s", secret, st.Reason)
		}
	}
}

func TestAListThatIsNone(t *testing.T) {
	st := open(t, mcp.Options{}, stdio("s", "raw:nolist")).Discover(t.Context())[0]
	if all := strings.Join(st.Warnings, " ") + st.Reason; !strings.Contains(all, `page 1 of tools/list has no list "tools"`) {
		t.Errorf("ready %v, warnings %q, reason %q", st.Ready, st.Warnings, st.Reason)
	}
}

func TestAnErrorThatCannotBeRead(t *testing.T) {
	s := stdio("s", "raw:baderror")
	_, err := open(t, mcp.Options{}, s).Call(t.Context(), s.Key(), "t", json.RawMessage(`{}`), false)
	var failed *v1.MCPError
	if !errors.As(err, &failed) {
		t.Errorf("got %v", err)
	}
}

func TestOneBadServerHidesNoOther(t *testing.T) {
	mute := stdio("mute", "mute")
	mute.Spec.ConnectTimeoutMS = 300
	absent := stdio("absent", "x")
	absent.Spec.Command = "no-such-program-here"
	unset := stdio("unset", "sdk")
	unset.Spec.Env["A"] = "${NOT_SET_ANYWHERE}"
	unset.Spec.Env["B"] = "x${also wrong}"
	frozen := time.Now() // so that no back-off runs out
	u := open(t, mcp.Options{Now: func() time.Time { return frozen }}, stdio("good", "sdk"), mute, absent, unset, stdio("die", "die"), web("refused", "http://127.0.0.1:1/mcp"))
	began := time.Now()
	states := u.Discover(t.Context())
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("discovery took %s", took)
	}
	want := map[string]string{
		"good":    "",
		"mute":    "no session after 300ms (spec.connect_timeout_ms): it did not answer in time",
		"absent":  `the program "no-such-program-here" is not in PATH`,
		"unset":   `environment variable "NOT_SET_ANYWHERE" is not set`,
		"die":     `its process ended: exit status 3; the last line of its stderr is "no configuration found"`,
		"refused": "connection refused",
	}
	for _, st := range states {
		name := st.Key.Name
		if st.Ready != (want[name] == "") || !strings.Contains(st.Reason, want[name]) {
			t.Errorf("%s: ready %v, reason %s", name, st.Ready, st.Reason)
		}
		var unavailable *v1.MCPError
		var invalid *v1.ValidationError
		switch name {
		case "good":
		case "unset":
			if !errors.As(st.Err, &invalid) || len(invalid.Violations) != 2 || invalid.Violations[0].Path == "" {
				t.Errorf("%s: %#v", name, st.Err)
			}
		default:
			if !errors.As(st.Err, &unavailable) || unavailable.Code != 0 || unavailable.Server != name {
				t.Errorf("%s: %#v", name, st.Err)
			}
			began := time.Now() // in its back-off, the call fails at once
			_, err := u.Call(t.Context(), key(name), "x", nil, true)
			if !errors.As(err, &unavailable) || time.Since(began) > 200*time.Millisecond || !strings.Contains(v1.Detailed(err), "; next attempt in ") {
				t.Errorf("%s: call: %v after %s", name, err, time.Since(began))
			}
		}
	}
}

// TestEarlyEndIsExplained checks that the end of a child is reported also if it is first noticed by a write that fails.
func TestEarlyEndIsExplained(t *testing.T) {
	var servers []*v1.MCPServer
	for i := range 30 {
		m := stdio("s"+strconv.Itoa(i), "")
		m.Spec.Command, m.Spec.Args = "sh", []string{"-c", "exec <&-; echo no configuration found >&2; exit 3"}
		servers = append(servers, m)
	}
	u := open(t, mcp.Options{}, servers...)
	for _, st := range u.Discover(t.Context()) {
		if want := `its process ended: exit status 3; the last line of its stderr is "no configuration found"`; !strings.Contains(st.Reason, want) {
			t.Errorf("%s: %s", st.Key.Name, st.Reason)
		}
	}
}

func TestFiftyServersTakeAsLongAsTheSlowest(t *testing.T) {
	var servers []*v1.MCPServer
	h := serveHTTP(t, nil)
	for i := range 49 {
		servers = append(servers, web("s"+strconv.Itoa(i), h.URL))
	}
	hung := stdio("hung", "mute")
	hung.Spec.ConnectTimeoutMS = 1500
	u := open(t, mcp.Options{}, append(servers, hung)...)
	began := time.Now()
	ready := 0
	for _, st := range u.Discover(t.Context()) {
		if st.Ready {
			ready++
		}
	}
	took := time.Since(began)
	t.Logf("50 servers in %s, the slowest takes 1.5s", took)
	if ready != 49 || took > 4*time.Second {
		t.Errorf("%d ready after %s", ready, took)
	}
}

func TestToolFailureIsAResult(t *testing.T) {
	u := open(t, mcp.Options{}, stdio("s", "sdk"))
	res, err := u.Call(t.Context(), key("s"), "fail", nil, false)
	var failed *v1.ExecutionError
	if !errors.As(err, &failed) || failed.Phase != v1.PhaseExecute || failed.Message != "out of ink" || res.Status != v1.StatusFailed || string(res.Content) != `"out of ink"` {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestProtocolErrorsKeepTheirCode(t *testing.T) {
	for name, s := range map[string]*v1.MCPServer{"stdio": stdio("s", "sdk"), "http": web("s", serveHTTP(t, nil).URL)} {
		t.Run(name, func(t *testing.T) {
			u := open(t, mcp.Options{}, s)
			_, err := u.Call(t.Context(), key("s"), "no-such-tool", nil, true)
			var refused *v1.MCPError
			if !errors.As(err, &refused) || refused.Code != -32602 || !strings.Contains(err.Error(), "no-such-tool") {
				t.Errorf("got %v", err)
			}
			if _, err := u.Call(t.Context(), key("s"), "echo", nil, false); err != nil {
				t.Errorf("the session is lost: %v", err)
			}
		})
	}
	u := open(t, mcp.Options{}, stdio("s", "sdk"))
	_, err := u.Call(t.Context(), key("t"), "echo", nil, false)
	var absent *v1.NotFoundError
	if !errors.As(err, &absent) || absent.Kind != v1.KindMCPServer {
		t.Errorf("a server that is not there: %v", err)
	}
}

func TestChildGetsOnlyItsEnvironment(t *testing.T) {
	s := stdio("s", "sdk")
	s.Spec.Env["TOKEN"], s.Spec.Env["PLAIN"], s.Spec.Env["DEFAULTED"], s.Spec.Env["LITERAL"] = "Bearer ${SECRET}", "a", "${NOPE:-b}", "$${X}"
	s.Spec.EnvPassthrough = []string{"LANG", "NOT_THERE"}
	env := map[string]string{"SECRET": "s3cr3t", "LANG": "C", "PATH": "/bin", "HOME": "/root", "OTHER": "x"}
	u := open(t, mcp.Options{Env: func(k string) (string, bool) { v, ok := env[k]; return v, ok }}, s)
	res, err := u.Call(t.Context(), key("s"), "env", nil, false)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := json.Unmarshal(res.Content, &got); err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	want := []string{"DEFAULTED=b", "HOME=/root", "LANG=C", "LITERAL=${X}", roleVar + "=sdk", "PATH=/bin", "PLAIN=a", "TOKEN=Bearer [REDACTED]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestStderrIsKeptAndMasked(t *testing.T) {
	s := stdio("s", "sdk:noisy")
	s.Spec.Env["TOKEN"] = "${SECRET}"
	log := &syncBuffer{}
	u := open(t, mcp.Options{Logger: logger(log), Env: func(k string) (string, bool) { return "hunter2", k == "SECRET" }}, s)
	if _, err := u.Call(t.Context(), key("s"), "echo", nil, false); err != nil {
		t.Fatal(err)
	}
	st, _ := u.State(key("s"))
	if got := string(st.Stderr); got != "starting with token [REDACTED]\n" {
		t.Errorf("stderr %q", got)
	}
	if l := log.String(); !strings.Contains(l, "server=s source=stderr") || strings.Contains(l, "hunter2") {
		t.Errorf("log %s", l)
	}
}

func TestProgressComesBeforeTheAnswer(t *testing.T) {
	for name, s := range map[string]*v1.MCPServer{"stdio": stdio("s", "sdk"), "http": web("s", serveHTTP(t, nil).URL),
		"stateless": web("s", serveHTTP(t, &sdk.StreamableHTTPOptions{Stateless: true}).URL)} {
		t.Run(name, func(t *testing.T) {
			u := open(t, mcp.Options{}, s)
			var got []mcp.Progress
			ctx := mcp.WithProgress(t.Context(), func(p mcp.Progress) { got = append(got, p); panic("contained") })
			if _, err := u.Call(ctx, key("s"), "progress", nil, false); err != nil {
				t.Fatal(err)
			}
			if len(got) != 5 || got[4] != (mcp.Progress{Progress: 5, Total: 5, Message: "step"}) {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestMetaHook(t *testing.T) {
	u := open(t, mcp.Options{Meta: func(context.Context) map[string]any { return map[string]any{"traceparent": "00-1-2-01"} }}, stdio("s", "sdk"))
	res, err := u.Call(t.Context(), key("s"), "meta", nil, false)
	if err != nil || !strings.Contains(string(res.Content), `"traceparent":"00-1-2-01"`) {
		t.Errorf("got %s, %v", res.Content, err)
	}
}

func TestCancellationReachesTheServer(t *testing.T) {
	for name, s := range map[string]*v1.MCPServer{"stdio": stdio("s", "sdk"), "http": web("s", serveHTTP(t, nil).URL)} {
		t.Run(name, func(t *testing.T) {
			u := open(t, mcp.Options{}, s)
			if _, err := u.Call(t.Context(), key("s"), "echo", nil, false); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			failed := make(chan error)
			go func() {
				_, err := u.Call(ctx, key("s"), "hang", nil, true)
				failed <- err
			}()
			cancelled := func() string {
				res, err := u.Call(t.Context(), key("s"), "cancelled", nil, false)
				if err != nil {
					t.Fatal(err)
				}
				return string(res.Content)
			}
			for range 20 { // round trips, so that the call has surely reached the server
				cancelled()
			}
			cancel()
			if err := <-failed; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			for end := time.Now().Add(3 * time.Second); cancelled() != "1"; {
				if time.Now().After(end) {
					t.Fatal("the server was not told")
				}
			}
		})
	}
}

func TestTimeouts(t *testing.T) {
	s := stdio("s", "sdk")
	s.Spec.TimeoutMS = 100
	s.Spec.Overrides = map[string]v1.ToolOverride{"hang": {TimeoutMS: 50}}
	u := open(t, mcp.Options{}, s)
	_, err := u.Call(t.Context(), key("s"), "hang", nil, false)
	var failed *v1.ExecutionError
	if !errors.As(err, &failed) || failed.Phase != v1.PhaseTimeout || !strings.Contains(err.Error(), `mcp server "s" did not answer tools/call within 50ms`) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := u.Call(ctx, key("s"), "hang", nil, true); !errors.Is(err, context.DeadlineExceeded) || errors.As(err, new(*v1.ExecutionError)) {
		t.Errorf("the caller's own time: %v", err)
	}
	if _, err := u.Call(t.Context(), key("s"), "echo", nil, false); err != nil {
		t.Errorf("a hung call spoils the session: %v", err)
	}
}

func pidOf(t *testing.T, u *mcp.Upstreams) int {
	t.Helper()
	res, err := u.Call(t.Context(), key("s"), "pid", nil, false)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(res.Content))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestKilledBetweenCalls(t *testing.T) {
	u := open(t, mcp.Options{}, stdio("s", "sdk"))
	for range 5 {
		pid := pidOf(t, u)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		waitGone(t, pid)
		if next := pidOf(t, u); next == pid {
			t.Errorf("pid %d answers after its death", pid)
		}
	}
	if st, _ := u.State(key("s")); st.Starts != 6 {
		t.Errorf("%d starts", st.Starts)
	}
}

func TestKilledDuringACall(t *testing.T) {
	u := open(t, mcp.Options{}, stdio("s", "sdk"))
	pid := pidOf(t, u)
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			_, err := u.Call(t.Context(), key("s"), "hang", nil, false)
			var lost *v1.MCPError
			if !errors.As(err, &lost) || lost.Code != 0 || !strings.Contains(v1.Detailed(err), "its process ended: signal: killed") {
				t.Errorf("got %v", err)
			}
		})
	}
	for range 20 {
		pidOf(t, u)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	calls.Wait()
	if next := pidOf(t, u); next == pid {
		t.Error("the dead child answers")
	}
}

func TestOnlyWhatHintsAllowIsRepeated(t *testing.T) {
	u := open(t, mcp.Options{}, stdio("s", "sdk"))
	pidOf(t, u)
	res, err := u.Call(t.Context(), key("s"), "crash", nil, false)
	if !errors.As(err, new(*v1.MCPError)) || res.Attempts != 1 || !strings.Contains(v1.Detailed(err), "exit status 7") {
		t.Errorf("without hints: %d attempts, %v", res.Attempts, err)
	}
	pidOf(t, u)
	res, err = u.Call(t.Context(), key("s"), "crash", nil, true)
	if !errors.As(err, new(*v1.MCPError)) || res.Attempts < 2 {
		t.Errorf("with hints: %d attempts, %v", res.Attempts, err)
	}
}

func TestListChanged(t *testing.T) {
	for name, s := range map[string]*v1.MCPServer{"stdio": stdio("s", "sdk"), "http": web("s", serveHTTP(t, nil).URL),
		"stateless": web("s", serveHTTP(t, &sdk.StreamableHTTPOptions{Stateless: true}).URL)} {
		t.Run(name, func(t *testing.T) {
			changes := make(chan v1.Key, 10)
			u := open(t, mcp.Options{OnChange: func(k v1.Key) { changes <- k }}, s)
			before := len(u.Discover(t.Context())[0].Tools)
			if _, err := u.Call(t.Context(), key("s"), "grow", nil, false); err != nil {
				t.Fatal(err)
			}
			select {
			case k := <-changes:
				if k != key("s") {
					t.Errorf("change of %v", k)
				}
			case <-time.After(5 * time.Second):
				t.Fatal("the change was not noticed")
			}
			if st, _ := u.State(key("s")); len(st.Tools) != before+1 || !st.Ready {
				t.Errorf("%d tools after %d", len(st.Tools), before)
			}
		})
	}
}

func TestReconnectFindsOtherTools(t *testing.T) {
	changes := make(chan v1.Key, 10)
	u := open(t, mcp.Options{OnChange: func(k v1.Key) { changes <- k }}, stdio("s", "sdk"))
	if _, err := u.Call(t.Context(), key("s"), "grow", nil, false); err != nil {
		t.Fatal(err)
	}
	before := len(u.Discover(t.Context())[0].Tools)
	_, _ = u.Call(t.Context(), key("s"), "crash", nil, false)
	pidOf(t, u)
	for {
		select {
		case <-changes:
		case <-time.After(5 * time.Second):
			t.Fatal("the new process has other tools, and nobody noticed")
		}
		if st, _ := u.State(key("s")); len(st.Tools) == before-1 {
			return
		}
	}
}

func TestLastKnownToolsOfADeadServer(t *testing.T) {
	s := stdio("s", "sdk")
	u := open(t, mcp.Options{}, s)
	tools := len(u.Discover(t.Context())[0].Tools)
	_, _ = u.Call(t.Context(), key("s"), "crash", nil, false)
	st, _ := u.State(key("s"))
	if st.Ready || len(st.Tools) != tools || !strings.Contains(st.Reason, "exit status 7") {
		t.Errorf("ready %v, %d tools, reason %s", st.Ready, len(st.Tools), st.Reason)
	}
}

func TestForeignBytes(t *testing.T) {
	tests := []struct{ role, want string }{
		{"raw:badjson", `the server wrote a line that is not JSON-RPC: "Listening on port 3000"`},
		{"raw:huge", "the server sent a message of more than 1048576 bytes"},
		{"raw:pingflood", "the server has 256 open requests"},
		{"raw:odd", ""},
	}
	for _, tt := range tests {
		t.Run(tt.role, func(t *testing.T) {
			u := open(t, mcp.Options{MaxMessageBytes: 1 << 20}, stdio("s", tt.role))
			_, err := u.Call(t.Context(), key("s"), "x", nil, false)
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (!errors.As(err, new(*v1.MCPError)) || !strings.Contains(v1.Detailed(err), tt.want)):
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("flood", func(t *testing.T) {
		u := open(t, mcp.Options{MaxMessageBytes: 1 << 20}, stdio("s", "flood"))
		st := u.Discover(t.Context())[0]
		if st.Ready || !strings.Contains(st.Reason, "more than 1048576 bytes") {
			t.Errorf("got %s", st.Reason)
		}
	})
}

func TestReadResourceAndPrompt(t *testing.T) {
	for name, s := range map[string]*v1.MCPServer{"stdio": stdio("s", "sdk"), "stateless": web("s", serveHTTP(t, &sdk.StreamableHTTPOptions{Stateless: true}).URL)} {
		t.Run(name, func(t *testing.T) {
			u := open(t, mcp.Options{}, s)
			got, err := u.ReadResource(t.Context(), key("s"), "file:///a.txt")
			want := []v1.Part{{Type: v1.PartResource, Resource: &v1.ResourceContents{URI: "file:///a.txt", MIMEType: "text/plain", Text: "A"}}}
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Error(err, diff)
			}
			prompt, err := u.GetPrompt(t.Context(), key("s"), "greet", map[string]string{"who": "you"})
			wantPrompt := mcp.PromptResult{Description: "a greeting", Messages: []mcp.PromptMessage{{Role: "user", Content: v1.Part{Type: v1.PartText, Text: "hello you"}}}}
			if diff := cmp.Diff(wantPrompt, prompt); diff != "" || err != nil {
				t.Error(err, diff)
			}
			_, err = u.Complete(t.Context(), key("s"), mcp.CompletionRequest{Prompt: "greet", Argument: "who"})
			var refused *v1.MCPError
			if !errors.As(err, &refused) || refused.Code != -32601 {
				t.Errorf("complete: %v", err)
			}
		})
	}
}

func TestReplaceKeepsWhatDidNotChange(t *testing.T) {
	u := open(t, mcp.Options{}, stdio("s", "sdk"), stdio("other", "sdk"))
	pid := pidOf(t, u)
	other := u.Discover(t.Context(), key("other"))[0].PID
	u.Replace([]*v1.MCPServer{stdio("s", "sdk")})
	if got := pidOf(t, u); got != pid {
		t.Errorf("pid %d became %d", pid, got)
	}
	waitGone(t, other)
	changed := stdio("s", "sdk")
	changed.Spec.Args = []string{"-x"}
	u.Replace([]*v1.MCPServer{changed})
	if got := pidOf(t, u); got == pid {
		t.Error("a changed manifest keeps its old process")
	}
	waitGone(t, pid)
	if got := u.Servers(); len(got) != 1 {
		t.Errorf("servers %v", got)
	}
}

func TestReplaceLetsCallsEnd(t *testing.T) {
	u := open(t, mcp.Options{}, stdio("s", "sdk"))
	pid := pidOf(t, u)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := u.Call(ctx, key("s"), "hang", nil, false)
		failed <- err
	}()
	for range 20 {
		pidOf(t, u)
	}
	u.Replace(nil)
	if err := syscall.Kill(pid, 0); err != nil {
		t.Errorf("the process of a running call is gone: %v", err)
	}
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	waitGone(t, pid)
}

func TestCloseEndsADeafChildAndItsGroup(t *testing.T) {
	u := mcp.NewUpstreams([]*v1.MCPServer{stdio("s", "sdk")}, mcp.Options{StopTimeout: 100 * time.Millisecond})
	pid := pidOf(t, u)
	res, err := u.Call(t.Context(), key("s"), "spawn", nil, false)
	if err != nil {
		t.Fatal(err)
	}
	grandchild, err := strconv.Atoi(string(res.Content))
	if err != nil {
		t.Fatal(err)
	}
	if err := u.Close(); err != nil {
		t.Error(err)
	}
	waitGone(t, pid)
	waitGone(t, grandchild)
	if _, err := u.Call(t.Context(), key("s"), "pid", nil, false); !errors.As(err, new(*v1.MCPError)) {
		t.Errorf("a call after Close: %v", err)
	}
	if err := u.Close(); err != nil {
		t.Error(err)
	}
}

func TestCloseWhileAServerStarts(t *testing.T) {
	mute := stdio("s", "mute")
	mute.Spec.ConnectTimeoutMS = 60_000
	u := mcp.NewUpstreams([]*v1.MCPServer{mute}, mcp.Options{StopTimeout: 100 * time.Millisecond})
	failed := make(chan error)
	go func() {
		_, err := u.Call(t.Context(), key("s"), "x", nil, false)
		failed <- err
	}()
	for end := time.Now().Add(5 * time.Second); len(childrenOf(t, os.Getpid())) < 2 && time.Now().Before(end); {
	}
	began := time.Now()
	u.Close()
	if err := <-failed; !errors.As(err, new(*v1.MCPError)) || time.Since(began) > 5*time.Second {
		t.Errorf("got %v after %s", err, time.Since(began))
	}
}

func TestWorkingDirIsBesideTheManifest(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := stdio("s", "sdk")
	exe, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	s.Spec.Command, s.Spec.WorkingDir, s.Source.File = exe, "sub", filepath.Join(dir, "server.yaml")
	u := open(t, mcp.Options{}, s)
	pid := pidOf(t, u)
	got, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd")
	if err != nil {
		t.Skip("no /proc: ", err)
	}
	if want, _ := filepath.EvalSymlinks(filepath.Join(dir, "sub")); got != want {
		t.Errorf("working directory %s, want %s", got, want)
	}
}

// syncBuffer is a buffer for many goroutines.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
