package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/sqlite"
)

// childEnv holds "JOB PATH" in a child process.
const childEnv = "TOOLCTL_STORE_TEST_CHILD"

const (
	childSet   = 40  // objects of one set
	childCalls = 150 // reservations of one process
	childLimit = 250 // the limit that the two processes share
)

// child is the main function of a second process. It returns the exit code.
func child(job string) int {
	job, path, _ := strings.Cut(job, " ")
	ctx := context.Background()
	st, err := sqlite.OpenStore(ctx, path, store.Options{Create: true})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer st.Close()
	if err := map[string]func(context.Context, *sqlite.Store) error{"apply": applyForEver, "call": callOften, "audit": auditOften, "take": takeAll}[job](ctx, st); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// applyForEver replaces one set after another, with changing members.
func applyForEver(ctx context.Context, st *sqlite.Store) error {
	for i := 0; ; i++ {
		set := tools(childSet+1, fmt.Sprintf("%d-%d", os.Getpid(), i))
		if _, err := st.Apply(ctx, append(set[:i%childSet], set[i%childSet+1:]...), store.ApplyOptions{Set: "s", Prune: true}); err != nil {
			return err
		}
		fmt.Println(i)
	}
}

// callOften reserves and applies, and prints how many reservations it got.
func callOften(ctx context.Context, st *sqlite.Store) error {
	granted := 0
	for i := range childCalls {
		_, full, err := st.Reserve(ctx, []v1.Counter{{Key: "k", Limit: childLimit}})
		if err != nil {
			return err
		}
		if full == -1 {
			granted++
		}
		if i%10 == 0 {
			own := tools(5, fmt.Sprint(i))
			for _, o := range own {
				o.Head().Metadata.Namespace = fmt.Sprintf("p%d", os.Getpid())
			}
			if _, err := st.Apply(ctx, own, store.ApplyOptions{}); err != nil {
				return err
			}
		}
	}
	fmt.Println(granted)
	return nil
}

// auditOften writes audit records, several at once.
func auditOften(ctx context.Context, st *sqlite.Store) error {
	errs := make(chan error, childCalls)
	for i := range childCalls {
		go func() {
			errs <- st.AppendAudit(ctx, v1.AuditRecord{CallID: fmt.Sprintf("%d-%d", os.Getpid(), i), Tool: "get", Status: v1.StatusComplete})
		}()
	}
	for range childCalls {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}

func startChild(t *testing.T, job, path string) (*osexec.Cmd, *bufio.Reader) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := osexec.Command(self)
	cmd.Env = append(os.Environ(), childEnv+"="+job+" "+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewReader(out)
}

// TestTwoProcesses: both create the store, apply and call at the same time.
func TestTwoProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), ".toolctl", "state.db")
	a, outA := startChild(t, "call", path)
	b, outB := startChild(t, "call", path)
	var total int
	for i, out := range []io.Reader{outA, outB} {
		var granted int
		if _, err := fmt.Fscan(out, &granted); err != nil {
			t.Errorf("process %d: %v", i, err)
		}
		total += granted
	}
	for _, cmd := range []*osexec.Cmd{a, b} {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	if total != childLimit {
		t.Errorf("%d reservations were granted, the limit is %d", total, childLimit)
	}
	st := open(t, path)
	read(t, st, []v1.Counter{{Key: "k"}}, []int64{childLimit})
	list := mustList(t, st, store.ListOptions{})
	if list.Total != 10 || list.ResourceVersion != 2*5*childCalls/10 {
		t.Errorf("%d objects at %d: want 10 at %d", list.Total, list.ResourceVersion, 2*5*childCalls/10)
	}
}

// TestTwoProcessesAudit: the records of two processes form one chain.
func TestTwoProcessesAudit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	a, outA := startChild(t, "audit", path)
	b, outB := startChild(t, "audit", path)
	for _, out := range []io.Reader{outA, outB} {
		if _, err := io.Copy(io.Discard, out); err != nil {
			t.Error(err)
		}
	}
	for _, cmd := range []*osexec.Cmd{a, b} {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	check := verified(t, open(t, path), "")
	if check.Broken != nil || check.Lines != 2*childCalls {
		t.Errorf("%d lines, %v: want %d whole ones", check.Lines, check.Broken, 2*childCalls)
	}
}

// TestKill kills a process in the middle of its applies, and at its start.
func TestKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	sets := map[string]bool{}
	for round := range 15 {
		cmd, out := startChild(t, "apply", path)
		if round > 0 { // the first round may be killed while it creates the store
			if _, err := out.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		timer := time.AfterFunc(rand.N(20*time.Millisecond), func() { cmd.Process.Kill() })
		if _, err := io.Copy(io.Discard, out); err != nil { // until the process has ended
			t.Fatal(err)
		}
		timer.Stop()
		if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
			t.Fatalf("round %d: the child ended by itself: %v", round, err)
		}
		st, err := sqlite.OpenStore(t.Context(), path, store.Options{Create: true})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		list := mustList(t, st, store.ListOptions{})
		if round > 0 || list.Total > 0 {
			mark := list.Records[0].Object.Head().Metadata.Labels["mark"]
			wholeSet(t, st, childSet, mark)
			sets[mark] = true
		}
		var ok string
		if err := st.DB().QueryRow("PRAGMA integrity_check").Scan(&ok); err != nil || ok != "ok" {
			t.Fatalf("round %d: integrity: %s, %v", round, ok, err)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(sets) < 10 {
		t.Errorf("only %d different states were seen", len(sets))
	}
}
