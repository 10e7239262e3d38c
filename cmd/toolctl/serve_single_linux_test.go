package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"toolctl.dev/toolctl/internal/until"
)

// only has replicas of a server that must be a single process, and the file that this server writes.
type only struct {
	*sharing
	log string
}

func launchOnly(t *testing.T, n int, more string, flags ...string) *only {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	s := launchSharing(t, newDatabase(t), `
apiVersion: toolctl.dev/v1
kind: MCPServer
metadata: {name: up}
spec: {command: "`+linked(t, "only-stdio")+`", args: ["`+log+`"], replicas: one}
`+more, n, flags...)
	o := &only{s, log}
	for _, p := range s.all {
		o.untilCalled(t, p)
	}
	return o
}

// untilCalled waits until calls at a process reach the server, and returns the text of the first successful call.
func (o *only) untilCalled(t *testing.T, p *program) (text string) {
	t.Helper()
	until.NoError(t, func() (err error) {
		text, err = callText(t.Context(), o.client(t, p, "2026-07-28", nil), "up__add", nil)
		return err
	})
	return text
}

func (o *only) client(t *testing.T, p *program, version string, opts *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	cs, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, opts).Connect(t.Context(),
		&sdk.StreamableClientTransport{Endpoint: p.url, HTTPClient: &http.Client{Transport: asBearer{"1"}}}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cs.Close() }) // the process may have been killed
	return cs
}

// callText returns the text of a result. It also returns an error for a failed call.
func callText(ctx context.Context, cs *sdk.ClientSession, tool string, token any) (string, error) {
	params := &sdk.CallToolParams{Name: tool}
	if token != nil {
		params.SetProgressToken(token)
	}
	res, err := cs.CallTool(ctx, params)
	if err != nil {
		return "", err
	}
	text := res.Content[0].(*sdk.TextContent).Text
	if res.IsError {
		return "", errors.New(text)
	}
	return text, nil
}

// lines returns the lines that the server's processes wrote with the prefix what.
func (o *only) lines(t *testing.T, what string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(o.log)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, what+" ") {
			all = append(all, strings.TrimSpace(line))
		}
	}
	return all
}

func (o *only) until(t *testing.T, what string, n int) (all []string) {
	t.Helper()
	until.NoError(t, func() error {
		if all = o.lines(t, what); len(all) < n {
			return fmt.Errorf("expected %q %d times: %v", what, n, o.lines(t, ""))
		}
		return nil
	})
	return all
}

// check fails if two processes of the server ran at once, or if the number of processes is not starts.
func (o *only) check(t *testing.T, starts int) {
	t.Helper()
	if got := o.lines(t, "start"); len(got) != starts {
		t.Errorf("the server was started %d times, want %d: %v", len(got), starts, got)
	}
	if got := o.lines(t, "overlap"); len(got) > 0 {
		t.Errorf("two processes of the server at once: %v", got)
	}
}

// owner returns the process whose child the server is, and the other processes.
func (o *only) owner(t *testing.T) (owner *program, others []*program) {
	t.Helper()
	starts := o.lines(t, "start")
	parent := parentOf(t, strings.Fields(starts[len(starts)-1])[1])
	for _, p := range o.all {
		if p.ProcessState == nil && fmt.Sprint(p.Process.Pid) == parent {
			owner = p
		} else {
			others = append(others, p)
		}
	}
	if owner == nil {
		t.Fatalf("none of the replicas is %s", parent)
	}
	return owner, others
}

func parentOf(t *testing.T, pid string) string {
	t.Helper()
	text, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "PPid:")
	return strings.Fields(after)[0]
}

// TestSingleServer checks that a server that must be a single process is one for the clients of all replicas.
func TestSingleServer(t *testing.T) {
	t.Parallel()
	o := launchOnly(t, 3, `
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: few}
spec:
  limits:
  - {tools: [up__ask], max_calls: 6, per: day, by: principal}
`)
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		for i, p := range o.all {
			reports := make(chan string, 1)
			changed := make(chan bool, 10)
			updated := make(chan string, 10)
			cs := o.client(t, p, version, &sdk.ClientOptions{
				ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
					return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"city": fmt.Sprint("Oslo ", i)}}, nil
				},
				ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { reports <- r.Params.Message },
				ToolListChangedHandler:      func(context.Context, *sdk.ToolListChangedRequest) { changed <- true },
				ResourceUpdatedHandler:      func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) { updated <- r.Params.URI },
			})
			t.Run(fmt.Sprint(version, " at ", i), func(t *testing.T) {
				if text, err := callText(t.Context(), cs, "up__ask", nil); err != nil || text != fmt.Sprint("city Oslo ", i) {
					t.Errorf("the client is asked: %q, %v", text, err)
				}
				if r, err := cs.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "up__hello"}); err != nil || r.Messages[0].Content.(*sdk.TextContent).Text != "hello of one" {
					t.Error(r, err)
				}
				if r, err := cs.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "note://1"}); err != nil || r.Contents[0].Text != "a note" {
					t.Error(r, err)
				}
				waits := len(o.lines(t, "cancelled"))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				done := make(chan error, 1)
				go func() { _, err := callText(ctx, cs, "up__wait", "p"); done <- err }()
				if m := <-reports; m != "waiting" {
					t.Error(m)
				}
				cancel()
				if err := <-done; !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				o.until(t, "cancelled", waits+1) // the server received the cancellation
				if version == "2025-11-25" {
					if err := cs.Subscribe(t.Context(), &sdk.SubscribeParams{URI: "note://1"}); err != nil {
						t.Error(err)
					}
					if _, err := callText(t.Context(), cs, "up__grow", nil); err != nil {
						t.Error(err)
					}
					if uri := <-updated; uri != "note://1" {
						t.Error(uri)
					}
					if i == 0 {
						<-changed
					}
				}
			})
		}
	}
	for _, p := range o.all {
		if text, err := callText(t.Context(), o.client(t, p, "2026-07-28", nil), "up__grown", nil); err != nil || text != "grown" {
			t.Errorf("a tool that came later: %q, %v", text, err)
		}
		_, err := callText(t.Context(), o.client(t, p, "2026-07-28", nil), "up__ask", nil)
		if err == nil || !strings.Contains(err.Error(), "6 of 6 calls") {
			t.Errorf("policies count where the client is, once: %v", err)
		}
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	seen := map[string]bool{}
	for _, p := range o.all {
		cs := o.client(t, p, "2026-07-28", nil)
		for range 20 {
			all.Go(func() {
				text, err := callText(t.Context(), cs, "up__add", nil)
				mu.Lock()
				defer mu.Unlock()
				if err != nil || seen[text] {
					t.Errorf("%q twice, or %v", text, err)
				}
				seen[text] = true
			})
		}
	}
	all.Wait()
	runQuiet(t, "audit", "verify", "--store", o.dsn)
	_, others := o.owner(t)
	if _, err := callText(t.Context(), o.client(t, others[0], "2026-07-28", nil), "up__die", nil); err == nil || !strings.Contains(err.Error(), "the session was lost") || strings.Contains(err.Error(), "exit status") {
		t.Errorf("a server that dies: %v", err)
	}
	for _, p := range o.all {
		if text := o.untilCalled(t, p); !strings.HasPrefix(text, "call ") {
			t.Error(text)
		}
	}
	o.check(t, 2)
}

// TestSingleServerOwnerKilled checks that calls that were running at a killed replica fail at once with an
// explanation, and that another replica starts the server when the lease has expired.
func TestSingleServerOwnerKilled(t *testing.T) {
	t.Parallel()
	o := launchOnly(t, 3, "")
	owner, others := o.owner(t)
	cs := o.client(t, others[0], "2026-07-28", nil)
	done := make(chan error, 1)
	go func() { _, err := callText(t.Context(), cs, "up__wait", nil); done <- err }()
	o.until(t, "waiting", 1)
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "the replica that ran the server has ended: it is unknown whether the running calls were carried out") {
		t.Errorf("the call ended with %v", err)
	}
	ended := time.Since(killed)
	_ = owner.Wait()
	began := time.Now()
	_, err := callText(t.Context(), cs, "up__add", nil)
	if err != nil && !strings.Contains(err.Error(), "the replica that ran it has ended: another replica will start it within seconds") {
		t.Errorf("the next call: %v", err)
	}
	t.Logf("the call under way ended after %s, the next was answered after %s", ended, time.Since(began))
	for _, p := range others {
		o.untilCalled(t, p)
	}
	t.Logf("called again %s after the kill", time.Since(killed))
	o.check(t, 2)
}

// TestSingleServerDrains checks that a stopping replica lets the calls of its server end, also for clients of other
// replicas, and that another replica then starts the server.
func TestSingleServerDrains(t *testing.T) {
	t.Parallel()
	o := launchOnly(t, 2, "", "--drain-timeout", "1m")
	owner, others := o.owner(t)
	cs := o.client(t, others[0], "2026-07-28", nil)
	answers := make(chan string, 2)
	for _, at := range []*sdk.ClientSession{cs, o.client(t, owner, "2026-07-28", nil)} {
		go func() {
			text, err := callText(t.Context(), at, "up__wait", nil)
			answers <- fmt.Sprint(text, err)
		}()
	}
	o.until(t, "waiting", 2)
	if err := owner.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	untilDraining(t, others[0])
	next := make(chan string, 1)
	go func() { // waits until the server is handed over
		text, err := callText(t.Context(), cs, "up__add", nil)
		next <- fmt.Sprint(text, err)
	}()
	writeFile(t, o.log+".go", "")
	for range 2 {
		if text := <-answers; !strings.HasPrefix(text, "waited in process") {
			t.Errorf("a call that was under way: %s", text)
		}
	}
	if text := <-next; !strings.HasPrefix(text, "call 1 of process") {
		t.Errorf("the next call: %s", text)
	}
	if err := owner.Wait(); err != nil {
		t.Error(err)
	}
	o.check(t, 2)
}

// TestSingleServerHangs checks that a hanging replica loses the server with its lease, and ends its process of the
// server when it continues.
func TestSingleServerHangs(t *testing.T) {
	t.Parallel()
	o := launchOnly(t, 2, "")
	owner, others := o.owner(t)
	cs := o.client(t, others[0], "2026-07-28", nil)
	if err := owner.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = owner.Process.Signal(syscall.SIGCONT) }()
	began := time.Now()
	if text, err := callText(t.Context(), cs, "up__add", nil); err == nil {
		t.Errorf("a replica that hangs answered %s", text)
	} else {
		t.Logf("answered after %s: %v", time.Since(began), err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("answered after %s", took)
	}
	if err := owner.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for _, p := range o.all {
		o.untilCalled(t, p)
	}
}
