package grafana

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Each alert fires on a real server in the state that it warns of, and none on one that works.
func TestAlerts(t *testing.T) {
	all := rules(t)
	left := maps.Clone(all)
	for _, tt := range []struct {
		name   string
		alerts []string
		start  func(t *testing.T) ([]*gateway, func(p *prometheus)) // what is watched, and what brings about the alerts
	}{
		{"a process that ends", []string{"ToolctlDown"}, func(t *testing.T) ([]*gateway, func(*prometheus)) {
			g := serve(t, "-f", write(t, echo))
			return one(g), func(p *prometheus) {
				g.end()
				p.pass(3*time.Minute, nil)
			}
		}},
		{"a store that is full", []string{"ToolctlAuditFailing", "ToolctlAuditGap", "ToolctlStoreFailing"}, func(t *testing.T) ([]*gateway, func(*prometheus)) {
			g := serve(t, "--store", applied(t, echo), "--store-max-bytes", "1000000")
			return one(g), func(p *prometheus) {
				for _, args := range []any{large, nil} {
					for refused := 0; refused < 5; { // until there is room for neither
						if strings.Contains(g.call("echo", args), "audit log cannot be written") {
							refused++
						} else {
							refused = 0
						}
					}
				}
				p.pass(3*time.Minute, func() { g.call("echo", large) })
			}
		}},
		{"a store that is slow", []string{"ToolctlStoreSlow"}, func(t *testing.T) ([]*gateway, func(*prometheus)) {
			db := applied(t, echo)
			g := serve(t, "--store", db)
			return one(g), func(p *prometheus) {
				for range 2 {
					release := lock(t, db)
					time.AfterFunc(900*time.Millisecond, release)
					g.call("echo", nil)
					p.pass(4*time.Minute, func() { g.call("echo", nil) })
				}
			}
		}},
		{"a replica that cannot reach its store", []string{"ToolctlReplicaWithoutLease"}, func(t *testing.T) ([]*gateway, func(*prometheus)) {
			db := applied(t, echo)
			g := serve(t, "--store", db, "--replica-key-file", key(t))
			return one(g), func(p *prometheus) {
				release := lock(t, db)
				defer release()
				g.until("toolctl_replica_lease 0")
				p.pass(3*time.Minute, nil)
			}
		}},
		{"replicas on two stores", []string{"ToolctlReplicasApart"}, func(t *testing.T) ([]*gateway, func(*prometheus)) {
			k, db := key(t), applied(t, echo)
			a := serve(t, "--store", db, "--replica-key-file", k)
			return one(a), func(p *prometheus) {
				p.targets = append(p.targets, serve(t, "--store", applied(t, echo), "--replica-key-file", k))
				p.pass(3*time.Minute, nil)
			}
		}},
		{"a call that nobody decides on", []string{"ToolctlApprovalsWaiting"}, func(t *testing.T) ([]*gateway, func(*prometheus)) {
			g := serve(t, "--store", applied(t, careful))
			return one(g), func(p *prometheus) {
				g.call("pay", nil)
				g.until("toolctl_approvals_pending 1")
				p.pass(32*time.Minute, nil)
			}
		}},
		{"calls that nobody decides on", []string{"ToolctlApprovalsNearlyFull"}, func(t *testing.T) ([]*gateway, func(*prometheus)) {
			g := serve(t, "-f", write(t, careful))
			return one(g), func(p *prometheus) {
				for i := range 850 {
					if i%50 == 0 {
						g.begin()
					}
					g.call("pay", map[string]int{"number": i})
				}
				g.until("toolctl_approvals_pending 850")
				p.pass(2*time.Minute, nil)
			}
		}},
		{"a tool that fails", []string{"ToolctlCallsFailing"}, func(t *testing.T) ([]*gateway, func(*prometheus)) {
			g := serve(t, "--allow-private-network", "-f", write(t, echo+`
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: broken}
spec: {description: Asks what is not there, input_schema: {type: object}, http: {url: "http://127.0.0.1:1/"}}
`))
			return one(g), func(p *prometheus) { p.pass(8*time.Minute, func() { g.call("broken", nil) }) }
		}},
		{"an MCP server that ends", []string{"ToolctlMCPServerDown"}, func(t *testing.T) ([]*gateway, func(*prometheus)) {
			dir := t.TempDir()
			start, pid := filepath.Join(dir, "start"), filepath.Join(dir, "pid")
			script := fmt.Sprintf("#!/bin/sh\necho $$ >%s\nexec %s serve -f %s\n", pid, program, write(t, echo))
			if err := os.WriteFile(start, []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			g := serve(t, "-f", write(t, fmt.Sprintf(`
apiVersion: toolctl.dev/v1
kind: MCPServer
metadata: {name: notes}
spec: {command: %q, tool_names: bare}
`, start)))
			series := `toolctl_mcpserver_ready{toolctl_mcpserver="notes",toolctl_namespace="default"} `
			g.until(series + "1")
			return one(g), func(p *prometheus) {
				text, err := os.ReadFile(pid)
				if err != nil {
					t.Fatal(err)
				}
				number, err := strconv.Atoi(strings.TrimSpace(string(text)))
				if err := errors.Join(err, os.Remove(start), syscall.Kill(number, syscall.SIGKILL)); err != nil {
					t.Fatal(err)
				}
				g.until(series + "0")
				p.pass(6*time.Minute, nil)
			}
		}},
		{"a commit with an error", []string{"ToolctlSourceNotServed"}, func(t *testing.T) ([]*gateway, func(*prometheus)) {
			dir := write(t, echo)
			commit(t, dir)
			source := "git+file://" + dir
			g := serve(t, "--source", source, "--interval", "1s")
			return one(g), func(p *prometheus) {
				if err := os.WriteFile(filepath.Join(dir, "tools.yaml"), []byte(strings.Replace(echo, "mock_result", "mock_resul", 1)), 0o600); err != nil {
					t.Fatal(err)
				}
				commit(t, dir)
				g.until(fmt.Sprintf("toolctl_source_failed{toolctl_source=%q} 1", source))
				p.pass(6*time.Minute, nil)
			}
		}},
		{"a client beyond its rate", []string{"ToolctlRequestsRefused"}, func(t *testing.T) ([]*gateway, func(*prometheus)) {
			g := serve(t, "-f", write(t, echo), "--rate-limit", "1/h", "--rate-burst", "60")
			return one(g), func(p *prometheus) {
				p.pass(11*time.Minute, func() {
					for range 5 {
						if _, err := get(g.url); err != nil {
							t.Fatal(err)
						}
					}
				})
			}
		}},
		{"more clients than sessions", []string{"ToolctlSessionsEvicted"}, func(t *testing.T) ([]*gateway, func(*prometheus)) {
			g := serve(t, "-f", write(t, echo), "--max-sessions", "2")
			return one(g), func(p *prometheus) { p.pass(5*time.Minute, g.begin) }
		}},
	} {
		for _, name := range tt.alerts {
			if _, ok := all[name]; !ok {
				t.Fatalf("alerts.yaml has no %s", name)
			}
			delete(left, name)
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			targets, happen := tt.start(t)
			p := newPrometheus(t, targets...)
			p.pass(10*time.Minute, func() {
				for _, g := range targets {
					g.call("echo", nil)
				}
			})
			for _, r := range all {
				if fire := p.firing(r); len(fire) > 0 {
					t.Errorf("while all is well: %v", fire)
				}
			}
			happen(p)
			for _, name := range tt.alerts {
				fire := p.firing(all[name])
				if len(fire) == 0 {
					t.Errorf("%s does not fire", name)
				}
				for _, a := range fire {
					t.Logf("%s: %s. %s", a.name, a.summary, a.description)
				}
			}
		})
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		t.Errorf("no case makes %s fire", name)
	}
}

func one(g *gateway) []*gateway { return []*gateway{g} }

// large are arguments that soon fill a store.
var large = map[string]string{"text": strings.Repeat("x", 8000)}

// careful is a tool whose calls wait for a person, and one that works.
const careful = echo + `
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: pay}
spec: {description: Pays, input_schema: {type: object}, mock_result: {ok: true}}
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: careful}
spec: {require_approval: [pay]}
`

// commit makes a commit of all files of a folder.
func commit(t *testing.T, dir string) {
	t.Helper()
	for _, args := range []string{"init -q -b main", "add .", "-c user.name=t -c user.email=t@example.com commit -qm change"} {
		cmd := exec.Command("git", strings.Fields(args)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, out)
		}
	}
}

// key makes a key that replicas share.
func key(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(strings.Repeat("ab", 32)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// lock takes the lock of a store that its writers take turns with (sqlite.org/walformat.html, section 2.2), until release.
func lock(t *testing.T, db string) (release func()) {
	t.Helper()
	const writeLock = 120
	f, err := os.OpenFile(db+"-shm", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	for { // between two writers
		err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK, Start: writeLock, Len: 1})
		if err == nil {
			return func() { _ = f.Close() }
		}
		if err != syscall.EAGAIN && err != syscall.EACCES {
			t.Fatal(err)
		}
	}
}

// The table of docs/observability.md has each alert.
func TestAlertsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(Toolctl\\w+)` \\|").FindAllStringSubmatch(string(text), -1) {
		listed = append(listed, m[1])
	}
	slices.Sort(listed)
	if have := slices.Sorted(maps.Keys(rules(t))); !slices.Equal(listed, have) {
		t.Errorf("the page has %v, alerts.yaml %v", listed, have)
	}
}
