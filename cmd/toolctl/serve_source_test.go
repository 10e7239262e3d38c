package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"toolctl.dev/toolctl/pkg/action"
)

// gitRepo is a work tree with a bare repository as its remote.
type gitRepo struct{ work, bare, config string }

func newGitRepo(t *testing.T) *gitRepo {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	r := &gitRepo{filepath.Join(dir, "work"), filepath.Join(dir, "tools.git"), filepath.Join(dir, "gitconfig")}
	writeFile(t, r.config, "[user]\nname = a\nemail = a@example.com\n[init]\ndefaultBranch = main\n")
	r.git(t, "init", "-q", "--bare", r.bare)
	r.git(t, "init", "-q", r.work)
	return r
}

func (r *gitRepo) git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+r.config, "GIT_CONFIG_NOSYSTEM=1")
	if cmd.Dir = r.work; args[0] == "init" {
		cmd.Dir = ""
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// push commits and pushes the work tree, and returns the commit.
func (r *gitRepo) push(t *testing.T) string {
	t.Helper()
	r.git(t, "add", "-A")
	r.git(t, "commit", "-q", "-m", "a change")
	r.git(t, "push", "-q", r.bare, "HEAD:main")
	return r.git(t, "rev-parse", "HEAD")
}

// TestServeFollowsARepository checks that serve uses each good push and no bad one, and that /readyz, status and the
// metrics show the served commit.
func TestServeFollowsARepository(t *testing.T) {
	t.Parallel()
	r := newGitRepo(t)
	writeFile(t, filepath.Join(r.work, "prod/tools.yaml"), fmt.Sprintf(mockTool, "one"))
	first := r.push(t)
	s := serveHTTP(t, "--source", "git+file://"+r.bare+"//prod?ref=main", "--interval", "1s", "--metrics-addr", "127.0.0.1:0")
	o, told := listener()
	cs := s.client(t, "2025-11-25", o)
	if body := s.readyz(t); !strings.Contains(body, `"commit":"`+first+`"`) || !strings.Contains(body, `"since":"`) || strings.Contains(body, "warning") {
		t.Error(body)
	}

	writeFile(t, filepath.Join(r.work, "prod/tools.yaml"), fmt.Sprintf(mockTool, "two"))
	second := r.push(t)
	<-told
	s.wait(t, `"msg":"reloaded"`)
	if res, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "two"}); err != nil || res.IsError || toolNames(t, cs) != "two" {
		t.Errorf("got %v, %v", res, err)
	}

	writeFile(t, filepath.Join(r.work, "prod/more.yaml"), fmt.Sprintf(mockTool, "three"))
	writeFile(t, filepath.Join(r.work, "prod/tools.yaml"), strings.Replace(fmt.Sprintf(mockTool, "two"), "mock_result", "mock_resul", 1))
	bad := r.push(t)
	if line := s.wait(t, `"msg":"the reload failed`); !strings.Contains(line, bad) || !strings.Contains(line, "prod/tools.yaml:5:") {
		t.Errorf("got %s", line)
	}
	if names := toolNames(t, cs); names != "two" {
		t.Errorf("got %s", names)
	}
	if body := s.readyz(t); !strings.Contains(body, `"ready":true`) || !strings.Contains(body, `"commit":"`+second+`"`) || !strings.Contains(body, bad) || !strings.Contains(body, "prod/tools.yaml:5:") {
		t.Error(body)
	}
	var out strings.Builder
	if code := run(t.Context(), []string{"status", "--url", s.url, "-o", "json"}, strings.NewReader(""), &out, io.Discard); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	var status action.Readiness
	if err := json.Unmarshal([]byte(out.String()), &status); err != nil || !status.Ready || status.Source.Revision != second || status.Source.Failed.Revision != bad {
		t.Errorf("got %s, %v", out.String(), err)
	}
	out.Reset()
	run(t.Context(), []string{"status", "--url", s.url}, strings.NewReader(""), &out, io.Discard)
	if !strings.Contains(out.String(), "commit:   "+second+" since ") || !strings.Contains(out.String(), "warning:  commit "+bad+": ") {
		t.Error(out.String())
	}
	if body := s.metrics(t); !strings.Contains(body, `toolctl_source_commit_since_seconds{toolctl_commit="`+second+`"`) || !strings.Contains(body, "toolctl_source_failed{") {
		t.Error(body)
	}

	writeFile(t, filepath.Join(r.work, "prod/tools.yaml"), fmt.Sprintf(mockTool, "two"))
	r.push(t)
	s.wait(t, `"msg":"reloaded"`)
	if names := toolNames(t, cs); names != "three two" {
		t.Errorf("got %s", names)
	}
	if body := s.readyz(t); strings.Contains(body, "warning") || strings.Contains(body, "failed") {
		t.Error(body)
	}
}

// metrics returns the metrics in the format of Prometheus.
func (s *served) metrics(t *testing.T) string {
	t.Helper()
	s.mu.Lock()
	lines := append(append([]string{}, s.past...), s.lines...)
	s.mu.Unlock()
	for _, l := range lines {
		var at struct{ Msg, URL string }
		if json.Unmarshal([]byte(l), &at) == nil && at.Msg == "metrics" {
			res, err := http.Get(at.URL) //nolint:noctx // a test
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			return string(body)
		}
	}
	t.Fatal("no line says where the metrics are")
	return ""
}

// TestServeTakesAWebhook checks that a webhook makes serve pull at once, regardless of the interval, and needs no
// token.
func TestServeTakesAWebhook(t *testing.T) {
	const secret = "a-secret-of-the-webhook"
	r := newGitRepo(t)
	writeFile(t, filepath.Join(r.work, "tools.yaml"), fmt.Sprintf(mockTool, "one"))
	r.push(t)
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "secret"), secret+"\n")
	sum := sha256.Sum256([]byte("token"))
	writeFile(t, filepath.Join(dir, "tokens"), "me:"+hex.EncodeToString(sum[:])+"\n")
	s := serveHTTP(t, "--source", "git+file://"+r.bare, "--interval", "24h", "--hook-secret-file", filepath.Join(dir, "secret"), "--token-file", filepath.Join(dir, "tokens"))
	deliver := func(secret string) int {
		t.Helper()
		const body = `{"ref":"refs/heads/main"}`
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(body))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, strings.Replace(s.url, "/mcp", "/hooks/git", 1), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	writeFile(t, filepath.Join(r.work, "tools.yaml"), fmt.Sprintf(mockTool, "two"))
	second := r.push(t)
	if code := deliver("another-secret-of-it"); code != http.StatusUnauthorized {
		t.Errorf("got %d", code)
	}
	if code := deliver(secret); code != http.StatusAccepted {
		t.Errorf("got %d", code)
	}
	s.wait(t, `"msg":"reloaded"`)
	if body := s.readyz(t); !strings.Contains(body, second) {
		t.Error(body)
	}
}

// TestServeStartsBesideABadCommit checks that a gateway that starts while the newest commit is bad serves the previous
// commit, and does not start if no commit is good.
func TestServeStartsBesideABadCommit(t *testing.T) {
	r := newGitRepo(t)
	writeFile(t, filepath.Join(r.work, "tools.yaml"), "kind: [")
	bad := r.push(t)
	var said strings.Builder
	address := "git+file://" + r.bare
	if code := run(t.Context(), []string{"serve", "--http", "127.0.0.1:0", "--source", address}, strings.NewReader(""), io.Discard, &said); code != exitInvalid || !strings.Contains(said.String(), "commit "+bad+": ") {
		t.Errorf("exit code %d: %s", code, said.String())
	}
	said.Reset()
	if code := run(t.Context(), []string{"serve", "--http", "127.0.0.1:0", "--source", address + "/none"}, strings.NewReader(""), io.Discard, &said); code != exitUnavailable {
		t.Errorf("exit code %d: %s", code, said.String())
	}
	writeFile(t, filepath.Join(r.work, "tools.yaml"), fmt.Sprintf(mockTool, "one"))
	good := r.push(t)
	writeFile(t, filepath.Join(r.work, "tools.yaml"), "kind: [")
	bad = r.push(t)
	s := serveHTTP(t, "--source", address)
	if body := s.readyz(t); !strings.Contains(body, `"commit":"`+good+`"`) || !strings.Contains(body, "commit "+bad) {
		t.Error(body)
	}
	if names := toolNames(t, s.client(t, "2025-11-25", nil)); names != "one" {
		t.Errorf("got %s", names)
	}
}

// TestForcePushIsNotServed checks that a force push to an older commit is not served, even after a restart, unless the
// options allow it.
func TestForcePushIsNotServed(t *testing.T) {
	t.Parallel()
	r := newGitRepo(t)
	writeFile(t, filepath.Join(r.work, "tools.yaml"), fmt.Sprintf(mockTool, "one"))
	first := r.push(t)
	writeFile(t, filepath.Join(r.work, "tools.yaml"), fmt.Sprintf(mockTool, "two"))
	second := r.push(t)
	dir, address := t.TempDir(), "git+file://"+r.bare+"?ref=main"
	serve := []string{"--source", address, "--interval", "1s", "--store", filepath.Join(dir, "state.db")}
	reconcile := []string{"reconcile", "--source", address, "--once", "--store", filepath.Join(dir, "set.db")}
	s := serveHTTP(t, serve...)
	cli(t, exitOK, reconcile...)

	r.git(t, "push", "-q", "--force", r.bare, first+":main")
	const why = "it does not descend from commit "
	if line := s.wait(t, `"msg":"the reload failed`); !strings.Contains(line, "commit "+first+": "+why+second) {
		t.Error(line)
	}
	again := serveHTTP(t, serve...)
	for _, s := range []*served{s, again} {
		if body := s.readyz(t); !strings.Contains(body, `"ready":true`) || !strings.Contains(body, `"commit":"`+second+`"`) || !strings.Contains(body, why+second) {
			t.Error(body)
		}
		if out, _ := cli(t, exitOK, "status", "--url", s.url); !strings.Contains(out, "warning:  commit "+first+": "+why+second) {
			t.Error(out)
		}
	}
	if _, said := cli(t, exitInvalid, reconcile...); !strings.Contains(said, why+second) {
		t.Error(said)
	}
	allowed := serveHTTP(t, append(serve, "--allow-rollback")...)
	if out, _ := cli(t, exitOK, "status", "--url", allowed.url); !strings.Contains(out, ", rolled back from "+second) {
		t.Error(out)
	}
	if names := toolNames(t, allowed.client(t, "2025-11-25", nil)); names != "one" {
		t.Errorf("got %s", names)
	}
	if out, _ := cli(t, exitOK, append(reconcile, "--allow-rollback")...); !strings.Contains(out, "tool/one created") {
		t.Error(out)
	}
	if out, _ := cli(t, exitOK, "rollout", "history", "--store", filepath.Join(dir, "set.db"), "-o", "json"); !strings.Contains(out, first) || !strings.Contains(out, second) {
		t.Error(out)
	}
}

// TestReconcileFollows checks that reconcile runs until it is stopped, and reports each commit once.
func TestReconcileFollows(t *testing.T) {
	t.Parallel()
	r := newGitRepo(t)
	writeFile(t, filepath.Join(r.work, "tools.yaml"), fmt.Sprintf(mockTool, "one"))
	first := r.push(t)
	s := startLogged(t, "reconcile", "--source", "git+file://"+r.bare, "--interval", "1s", "--store", filepath.Join(t.TempDir(), "state.db"))
	if line := s.wait(t, `"msg":"applied"`); !strings.Contains(line, first) || !strings.Contains(line, `"created":1`) {
		t.Error(line)
	}
	writeFile(t, filepath.Join(r.work, "tools.yaml"), "kind: [")
	bad := r.push(t)
	if line := s.wait(t, `"msg":"nothing was changed"`); !strings.Contains(line, bad) || !strings.Contains(line, "tools.yaml:1:") || !strings.Contains(line, `"applied":"`+first) {
		t.Error(line)
	}
	writeFile(t, filepath.Join(r.work, "tools.yaml"), fmt.Sprintf(mockTool, "two"))
	r.push(t)
	if line := s.wait(t, `"msg":"applied"`); !strings.Contains(line, `"created":1`) || !strings.Contains(line, `"pruned":1`) || !strings.Contains(line, `"breaking":true`) {
		t.Error(line)
	}
}

// TestExampleRepositoryIsServed checks the example repository from a commit to a served call: dev follows main, prod
// follows its own branch, and a bad commit reaches neither.
func TestExampleRepositoryIsServed(t *testing.T) {
	t.Parallel()
	r := newGitRepo(t)
	if err := os.CopyFS(r.work, os.DirFS("../../manifests/gitops")); err != nil {
		t.Fatal(err)
	}
	r.push(t)
	r.git(t, "push", "-q", r.bare, "HEAD:prod")
	dev := serveHTTP(t, "--source", "git+file://"+r.bare+"//dev?ref=main", "--interval", "1s")
	prod := serveHTTP(t, "--source", "git+file://"+r.bare+"//prod?ref=prod", "--interval", "1s", "--store", filepath.Join(t.TempDir(), "state.db"))
	call := func(s *served, name string) string {
		t.Helper()
		res, err := s.client(t, "2025-11-25", nil).CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: map[string]any{"order": "O-17"}})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(res)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if got := call(dev, "cancel-order"); !strings.Contains(got, `"cancelled":true`) {
		t.Errorf("dev: got %s", got)
	}
	if got := call(prod, "cancel-order"); !strings.Contains(got, "needs approval") {
		t.Errorf("prod: got %s", got)
	}

	tools := filepath.Join(r.work, "base", "tools.yaml")
	text, err := os.ReadFile(tools)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, tools, strings.Replace(string(text), `"shipped"`, `"on its way"`, 1))
	commit := r.push(t)
	dev.wait(t, `"msg":"reloaded"`)
	if got := call(dev, "find-order"); !strings.Contains(got, "on its way") {
		t.Errorf("dev: got %s", got)
	}
	if got := call(prod, "find-order"); !strings.Contains(got, "shipped") {
		t.Errorf("prod: got %s", got)
	}
	r.git(t, "push", "-q", r.bare, commit+":prod")
	prod.wait(t, `"msg":"reloaded"`)
	if got := call(prod, "find-order"); !strings.Contains(got, "on its way") {
		t.Errorf("prod: got %s", got)
	}

	writeFile(t, filepath.Join(r.work, "prod", "policy.yaml"), "kind: ToolPolicy\nspec: {}\n")
	bad := r.push(t)
	r.git(t, "push", "-q", r.bare, bad+":prod")
	if line := prod.wait(t, `"msg":"the reload failed`); !strings.Contains(line, bad) || !strings.Contains(line, "prod/policy.yaml:1:") {
		t.Errorf("prod: %s", line)
	}
	if got := call(prod, "cancel-order"); !strings.Contains(got, "needs approval") {
		t.Errorf("prod: got %s", got)
	}
	if body := dev.readyz(t); strings.Contains(body, "warning") { // dev does not read that file
		t.Errorf("dev: %s", body)
	}
}
