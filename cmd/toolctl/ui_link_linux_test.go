package main

import (
	"bufio"
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

var consoleLink = regexp.MustCompile(`http://[a-z2-7]{16}\.localhost:\d+/ui/sign-in\?once=\w+`)

// TestNewConsoleLink checks that only the user who serves the console gets a new link, by "toolctl ui" and by SIGUSR1.
func TestNewConsoleLink(t *testing.T) {
	dir, runtime := t.TempDir(), t.TempDir()
	for _, name := range []string{"tool", "other"} {
		writeFile(t, filepath.Join(dir, name+".yaml"), "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: one}\nspec: {description: One, input_schema: {type: object}, mock_result: {}}\n")
	}
	mine := append(os.Environ(), "XDG_RUNTIME_DIR="+runtime, "TOOLCTL_STORE=")
	ui := func(in string, env []string, args ...string) (string, int) {
		t.Helper()
		cmd := again(t, "toolctl", append([]string{"ui", "--no-browser"}, args...)...)
		var errs bytes.Buffer
		cmd.Dir, cmd.Env, cmd.Stderr = in, env, &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() }).Stop()
		_ = cmd.Wait()
		return errs.String(), cmd.ProcessState.ExitCode()
	}
	redeem := func(link string) int {
		t.Helper()
		client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, regexp.MustCompile(`//[^:]+`).ReplaceAllString(link, "//127.0.0.1"), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = req.URL.Host // the console also accepts the link at the address
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	links := func(text string) []string { return consoleLink.FindAllString(text, -1) }
	serve := again(t, "toolctl")
	serve.Dir, serve.Env = dir, mine
	p := launchServe(t, serve, "--ui", "-f", "tool.yaml")
	logged := func(n int) string {
		t.Helper()
		for tick := time.NewTicker(5 * time.Millisecond); ; <-tick.C {
			log, err := os.ReadFile(p.logs)
			if err != nil || t.Context().Err() != nil {
				t.Fatal(err)
			}
			if all := links(string(log)); len(all) >= n {
				return all[n-1]
			}
		}
	}
	first := logged(1)
	if redeem(first) != http.StatusSeeOther || redeem(first) != http.StatusForbidden {
		t.Error("the link works once")
	}

	// asked runs "toolctl ui": with the same manifests, by another path, and in a folder without manifests.
	asked := func(in string, args ...string) string {
		t.Helper()
		said, code := ui(in, mine, args...)
		if all := links(said); code == 0 && len(all) == 1 && strings.HasPrefix(said, "the console is already running at http") {
			return all[0]
		}
		t.Fatalf("exit %d: %s", code, said)
		return ""
	}
	unused := asked(dir, "-f", filepath.Join(dir, "tool.yaml"))
	port := p.url[strings.LastIndex(p.url, ":")+1 : strings.LastIndex(p.url, "/")]
	for _, args := range [][]string{nil, {"--port", port}} {
		if link := asked(t.TempDir(), args...); redeem(link) != http.StatusSeeOther || redeem(link) != http.StatusForbidden {
			t.Errorf("%s does not work once", link)
		}
	}
	if redeem(unused) != http.StatusForbidden {
		t.Error("an older link works")
	}

	// SIGUSR1 writes a link to the log.
	if err := p.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	if link := logged(2); redeem(link) != http.StatusSeeOther {
		t.Errorf("%s does not work", link)
	}

	// Other users can access none of these files.
	folder := filepath.Join(runtime, "toolctl")
	if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info, err)
	}
	theirs := append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir(), "TOOLCTL_STORE=")
	if said, code := ui(t.TempDir(), theirs); code != exitUsage || !strings.Contains(said, "no manifests") {
		t.Errorf("without a console: exit %d: %s", code, said)
	}

	// Other manifests have their own console.
	other := again(t, "toolctl", "ui", "--no-browser", "-f", "other.yaml")
	other.Dir, other.Env = dir, mine
	stderr, err := other.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stderr).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "the console is at ") || strings.Contains(line, ":"+port+"/") {
		t.Errorf("%q %v", line, err)
	}
	both, _ := ui(t.TempDir(), mine)
	if len(links(both)) != 2 {
		t.Errorf("of two consoles: %s", both)
	}

	// A killed process leaves a socket that nobody serves.
	_ = other.Process.Kill()
	_ = other.Wait()
	asked(t.TempDir())
	if all, err := os.ReadDir(folder); err != nil || len(all) != 1 {
		t.Errorf("%v %v", all, err)
	}
}
