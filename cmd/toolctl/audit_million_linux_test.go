package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/backends"
)

// longAudit is a store that can only be copied. It has n chained lines of calls, two for each call. The lines are 5
// seconds apart, so a million lines span two months.
type longAudit struct {
	store.Store
	n      int
	newest time.Time
}

func (l longAudit) CopyOut(_ context.Context, read func(store.Rows) error) error {
	return read(func(t store.Table) iter.Seq2[[]any, error] {
		return func(yield func([]any, error) bool) {
			switch t.Name {
			case "last":
				yield([]any{store.LastLine, int64(l.n), nil}, nil)
			case "audit":
				var head [sha256.Size]byte
				for i := range l.n {
					r := v1.AuditRecord{
						Time: l.newest.Add(time.Duration(i-l.n) * 5 * time.Second).Truncate(time.Microsecond), CallID: fmt.Sprintf("call-%012d", i/2), Principal: fmt.Sprintf("user-%d", i/2%100),
						Session: fmt.Sprintf("session-%d", i/2%1000), Namespace: "default", Tool: fmt.Sprintf("tool-%d", i/2%50), ArgsHash: strings.Repeat("ab", 32),
						Args: fmt.Appendf(nil, `{"number":%d,"text":"what is asked for"}`, i), Policy: &v1.PolicyDecision{Decision: v1.DecisionAllow},
						Status: []string{v1.StatusStarted, v1.StatusComplete}[i%2],
					}
					text, err := jsontext.Marshal(r)
					if err != nil {
						yield(nil, err)
						return
					}
					head = sha256.Sum256(append(head[:], text...))
					if !yield([]any{int64(i + 1), r.Time.UnixMicro(), r.Tool, r.Session, r.Status, r.Principal, text, bytes.Clone(head[:])}, nil) {
						return
					}
				}
			}
		}
	})
}

func (longAudit) CopyIn(context.Context, []store.Table, store.Rows) error {
	return errors.ErrUnsupported
}

// TestMillionAuditLines checks that commands that read and prune the audit need time in proportion to the number of
// lines, and bounded memory. It uses TOOLCTL_MILLION lines, and a tenth of that. docs/performance.md has the figures.
func TestMillionAuditLines(t *testing.T) {
	lines, _ := strconv.Atoi(os.Getenv("TOOLCTL_MILLION"))
	if lines < 1000 {
		t.Skip("set TOOLCTL_MILLION=1000000 to make an audit of that many lines")
	}
	for kind, newDSN := range map[string]func(t *testing.T) string{
		"sqlite":   func(t *testing.T) string { return filepath.Join(t.TempDir(), "state.db") },
		"postgres": func(t *testing.T) string { return newDatabase(t) },
	} {
		t.Run(kind, func(t *testing.T) {
			cost := map[string][2]usage{}
			for i, n := range []int{lines / 10, lines} {
				dsn, newest := newDSN(t), time.Now()
				st, err := backends.All().Open(t.Context(), dsn, store.Options{Create: true})
				if err != nil {
					t.Fatal(err)
				}
				if err := store.Copy(t.Context(), st, longAudit{n: n, newest: newest}); err != nil {
					t.Fatal(err)
				}
				if err := st.Close(); err != nil {
					t.Fatal(err)
				}
				half := newest.Add(-time.Duration(n/2) * 5 * time.Second).UTC().Format(time.RFC3339)
				for _, of := range []struct {
					args  string
					lines int // 0 means any number
				}{
					{"audit export", n}, {"audit export -o csv", n + 1}, {"audit export --tool tool-7", n / 50}, {"audit export --since " + half + " --principal user-7*", 0},
					{"audit export --decision refused", 0}, {"audit list", 103}, {"audit list --decision refused", 1}, {"audit list --all", 0},
					{"audit list --limit 0 -o json", 0}, {"audit verify", 1}, {"audit prune --before " + half, 0}, {"audit verify", 1},
				} {
					used := measure(t, append(strings.Fields(of.args), "--store", dsn)...)
					if of.lines > 0 && used.lines != of.lines {
						t.Errorf("%s: %d lines, want %d", of.args, used.lines, of.lines)
					}
					name := strings.Replace(of.args, half, "TIME", 1)
					both := cost[name]
					both[i] = used
					cost[name] = both
					t.Logf("%7d lines: %-50s %6.2f s (%.2f s of processor), %3d MB", n, name, used.took.Seconds(), used.cpu.Seconds(), used.memory>>20)
				}
			}
			for name, both := range cost {
				if both[1].memory > 100<<20 {
					t.Errorf("%s takes %d MB for %d lines: want at most 100", name, both[1].memory>>20, lines)
				}
				// For ten times the lines this limit is generous, but quadratic time would be a hundredfold.
				if bound := 25*both[0].cpu + 2*time.Second; both[1].cpu > bound {
					t.Errorf("%s takes %s for %d lines and %s for a tenth of them: it is not linear", name, both[1].cpu, lines, both[0].cpu)
				}
			}
		})
	}
}

// usage is the resource use of a command.
type usage struct {
	took, cpu time.Duration
	memory    int64
	lines     int // number of lines written
}

// lineCounter counts lines.
type lineCounter int

func (c *lineCounter) Write(p []byte) (int, error) {
	*c += lineCounter(bytes.Count(p, []byte("\n")))
	return len(p), nil
}

var _ io.Writer = (*lineCounter)(nil)

// measure runs toolctl in its own process.
func measure(t *testing.T, args ...string) usage {
	t.Helper()
	var lines lineCounter
	var stderr bytes.Buffer
	cmd := again(t, "toolctl", args...)
	cmd.Stdout, cmd.Stderr = &lines, &stderr
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	// The kernel's figure for an ended process includes the memory of its parent.
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	var most int64
	for {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("toolctl %s: %v: %s", strings.Join(args, " "), err, &stderr)
			}
			return usage{time.Since(began), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), most, int(lines)}
		case <-look.C:
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid)) // the process may have ended
			if _, rest, ok := strings.Cut(string(text), "VmHWM:"); ok {
				kb, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
				n, _ := strconv.ParseInt(kb, 10, 64)
				most = max(most, n<<10)
			}
		}
	}
}
