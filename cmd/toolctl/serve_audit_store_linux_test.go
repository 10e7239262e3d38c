package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	v1 "toolctl.dev/toolctl/api/v1"
)

// TestServeAuditLocked checks that calls are refused while another process keeps the store locked, and accepted
// afterwards.
func TestServeAuditLocked(t *testing.T) {
	t.Parallel()
	var orders atomic.Int64
	store := auditedStore(t, func(w http.ResponseWriter, _ *http.Request) {
		orders.Add(1)
		io.WriteString(w, "{}")
	})
	s := launchServe(t, again(t, "toolctl"), "--store", store, "--allow-private-network")
	cs := connect(t, s.url, "2025-11-25")
	call := func() *sdk.CallToolResult {
		t.Helper()
		res, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "order"})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	holder := again(t, "hold-store", store)
	in, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		t.Fatalf("%q: %v", line, err)
	}
	began := time.Now()
	res := call()
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
	if text := textOf(res); !res.IsError || !strings.Contains(text, "refused, because the audit log cannot be written") || orders.Load() != 0 {
		t.Errorf("error %v, %d calls ran: %s", res.IsError, orders.Load(), text)
	}
	if code, text := readyz(t, s); code != http.StatusServiceUnavailable || !strings.Contains(text, "locked by another process") {
		t.Errorf("/readyz: %d %s", code, text)
	}
	in.Close()
	if err := holder.Wait(); err != nil {
		t.Error(err)
	}
	if res := call(); res.IsError || orders.Load() != 1 {
		t.Errorf("%d calls ran: %s", orders.Load(), textOf(res))
	}
	runQuiet(t, "audit", "verify", "--store", store)
	var missing int64
	for _, l := range auditOf(t, store) {
		if l.Gap != nil {
			missing += l.Gap.Lines
		}
	}
	if missing != 1 {
		t.Errorf("the gaps have %d lines; want 1", missing)
	}
}

// TestAuditGapOnAFullDisk checks that the next command reports calls whose lines could not be written, even if there
// was no space for a note about them.
func TestAuditGapOnAFullDisk(t *testing.T) {
	t.Parallel()
	var orders atomic.Int64
	store := auditedStore(t, func(w http.ResponseWriter, _ *http.Request) {
		orders.Add(1)
		io.WriteString(w, "{}")
	})
	s := launchServe(t, again(t, "toolctl"), "--store", store, "--allow-private-network") // keeps the store open
	if _, err := connect(t, s.url, "2025-11-25").CallTool(t.Context(), &sdk.CallToolParams{Name: "order"}); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", `ulimit -f 0 && exec "$0" "$@"`, linked(t, "toolctl"), "call", "order", "--store", store, "--allow-private-network", "--audit", "best-effort")
	if out, err := cmd.CombinedOutput(); err != nil || orders.Load() != 2 {
		t.Fatalf("%v, %d calls ran: %s", err, orders.Load(), out)
	}
	gaps := 0
	for _, l := range auditOf(t, store) {
		if l.Gap != nil {
			gaps++
		}
	}
	if gaps != 1 {
		t.Errorf("%d lines on gaps; want 1", gaps)
	}
	runQuiet(t, "audit", "verify", "--store", store)
}

// TestServeReadOnlyStore checks that serve does not start with a store that it cannot write. Root can write
// everything, so this program starts again as the user nobody.
func TestServeReadOnlyStore(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "serve-readonly") // the user nobody cannot open the folder of the test
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store, file := filepath.Join(dir, "state.db"), filepath.Join(t.TempDir(), "a.yaml")
	writeFile(t, file, "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: a}\nspec: {description: A, input_schema: {type: object}, mock_result: 1}\n")
	runQuiet(t, "apply", "-f", file, "--store", store)
	cmd := again(t, "toolctl")
	if os.Geteuid() == 0 {
		program, err := os.ReadFile(cmd.Path)
		if err != nil {
			t.Fatal(err)
		}
		cmd.Path = filepath.Join(dir, "toolctl")
		if err := os.WriteFile(cmd.Path, program, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(store, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	for path, mode := range map[string]os.FileMode{store: 0o400, dir: 0o555} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	defer os.Chmod(dir, 0o700)
	var stdout, stderr bytes.Buffer
	cmd.Args = append(cmd.Args, "serve", "--http", freeAddress(t), "--store", store)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	err = cmd.Run()
	want := "error: store \"" + store + "\": the file or its folder cannot be written"
	if cmd.ProcessState.ExitCode() != exitFailed || !strings.HasPrefix(stderr.String(), want) || stdout.Len() > 0 {
		t.Errorf("%v, stdout %q, stderr %q; want %q", err, &stdout, &stderr, want)
	}
}

// TestAuditFollow checks that audit list --follow prints lines of other processes until it is interrupted.
func TestAuditFollow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, format string
		choose       []string
	}{
		{"json", "json", []string{"--tool", "p*"}},
		{"table", "table", []string{"--tool", "p*"}},
		{"labels", "json", []string{"-l", "team=pay"}},
		{"labels and a limit", "json", []string{"-l", "team=pay", "--limit", "1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			format := tt.format
			store, file := filepath.Join(t.TempDir(), "state.db"), filepath.Join(t.TempDir(), "a.yaml")
			writeFile(t, file, "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: pay, labels: {team: pay}}\nspec: {description: A, input_schema: {type: object}, mock_result: 1}\n"+
				"---\napiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: news}\nspec: {description: A, input_schema: {type: object}, mock_result: 1}\n")
			other := func(name string, args ...string) {
				t.Helper()
				cmd := again(t, "toolctl", append(args, "--store", store)...)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%s: %v: %s", name, err, out)
				}
			}
			other("apply", "apply", "-f", file)
			other("a call before", "call", "pay", "--session", "before")
			other("another tool", "call", "news", "--session", "before")
			follow := again(t, "toolctl", append([]string{"audit", "list", "--follow", "--store", store, "-o", format}, tt.choose...)...)
			var stderr bytes.Buffer
			follow.Stderr = &stderr
			out, err := follow.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := follow.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			next := func(session string) {
				t.Helper()
				for lines.Scan() {
					text := lines.Text()
					if strings.Contains(text, "news") {
						t.Errorf("%s chooses %s", tt.choose, text)
					}
					if format == "json" {
						var l auditLine
						if err := json.Unmarshal([]byte(text), &l); err != nil {
							t.Fatalf("%q: %v", text, err)
						}
						if l.Status == v1.StatusComplete && l.Session == session {
							return
						}
					} else if strings.Contains(text, " complete ") && strings.Contains(text, " "+session+" ") {
						return
					}
				}
				t.Fatalf("the output ended before the call of session %s: %s", session, &stderr)
			}
			next("before")
			for _, session := range []string{"one", "two"} {
				other("another tool", "call", "news", "--session", session)
				other("a call", "call", "pay", "--session", session)
				next(session)
			}
			if err := follow.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			for lines.Scan() {
				t.Errorf("unexpected line %q", lines.Text())
			}
			if err := follow.Wait(); err != nil || stderr.Len() > 0 {
				t.Errorf("%v: %s", err, &stderr)
			}
		})
	}
}
