//go:build unix

package proc

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func startShell(t *testing.T, h *Host, script string) (*Child, *Tail) {
	t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell")
	}
	tail := &Tail{Max: 100}
	c, err := h.Start(Spec{Path: sh, Args: []string{"-c", script}, Env: []string{"PATH=/bin:/usr/bin", "A=b"}, Dir: "/", StopTimeout: 100 * time.Millisecond, Stderr: tail.Add})
	if err != nil {
		t.Fatal(err)
	}
	return c, tail
}

func TestStopGoesInSteps(t *testing.T) {
	tests := []struct{ name, script, outcome string }{
		{"ends with its stdin", "read x; exit 4", "exit status 4"},
		{"ends on SIGTERM", "trap 'exit 5' TERM; echo up; while :; do sleep 0.01; done", "exit status 5"},
		{"ends on SIGKILL", "trap '' TERM; echo up; while :; do sleep 0.01; done", "signal: killed"},
		{"ended before", "exit 0", "exit status 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var h Host
			defer h.Close()
			c, _ := startShell(t, &h, tt.script)
			if strings.Contains(tt.script, "echo up") {
				if _, err := c.Stdout.Read(make([]byte, 10)); err != nil {
					t.Fatal(err)
				}
			}
			c.Stop()
			c.Stop()
			if got := c.Outcome(); got != tt.outcome {
				t.Errorf("got %s", got)
			}
			// After the kill, the process may remain until its parent, the system's first process, reaps it.
			for end := time.Now().Add(2 * time.Second); groupLives(c.PID()); {
				if time.Now().After(end) {
					t.Fatal("its group lives")
				}
			}
		})
	}
}

func TestTheGroupEndsWithAChildThatDies(t *testing.T) {
	var h Host
	defer h.Close()
	c, _ := startShell(t, &h, "sleep 100 & echo started; kill -9 $$")
	out, err := io.ReadAll(c.Stdout) // ends when sleep, which holds the pipe, is gone
	if err != nil || string(out) != "started\n" {
		t.Errorf("got %q, %v", out, err)
	}
	if got := c.Outcome(); got != "signal: killed" {
		t.Errorf("got %s", got)
	}
	c.Stop()
}

func TestStderrAndEnvironment(t *testing.T) {
	var h Host
	defer h.Close()
	c, tail := startShell(t, &h, "env | sort >&2; pwd >&2; printf 'no end' >&2")
	<-c.Exited()
	c.Stop()
	got := string(tail.Bytes())
	for _, want := range []string{"A=b\n", "PATH=/bin:/usr/bin\n", "\n/\n", "no end\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("stderr %q lacks %q", got, want)
		}
	}
	if strings.Contains(got, "HOME=") {
		t.Errorf("stderr %q", got)
	}
}

func TestTheGuardKillsWhatItWasTold(t *testing.T) {
	sleep := exec.Command("sleep", "100")
	kept := exec.Command("sleep", "100")
	for _, cmd := range []*exec.Cmd{sleep, kept} {
		cmd.SysProcAttr = ownGroup()
		if err := cmd.Start(); err != nil {
			t.Skip(err)
		}
	}
	g := startGuard()
	g.add(kept.Process.Pid)
	g.add(sleep.Process.Pid)
	g.remove(kept.Process.Pid)
	g.close()
	if err := sleep.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("got %v", err)
	}
	if err := syscall.Kill(kept.Process.Pid, 0); err != nil {
		t.Errorf("what was taken off the list is gone: %v", err)
	}
	_ = kept.Process.Kill()
	_ = kept.Wait()
}

func TestUnreadOfADeadChild(t *testing.T) {
	var h Host
	defer h.Close()
	c, _ := startShell(t, &h, "read line; echo $line; kill -9 $$")
	if _, err := fmt.Fprintln(c.Stdin, "one"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(c.Stdout); err != nil {
		t.Fatal(err)
	}
	<-c.Exited()
	n, ok := c.Unread()
	if ok && n != 0 {
		t.Errorf("%d bytes are unread", n)
	}
	c.Stop()
}

func TestTail(t *testing.T) {
	tail := Tail{Max: 20}
	for i := range 100 {
		tail.Add(fmt.Appendf(nil, "line %d", i))
	}
	if got := string(tail.Bytes()); got != "line 98\nline 99\n" {
		t.Errorf("got %q", got)
	}
	tail.Add(bytes.Repeat([]byte("x"), 50))
	if got := tail.Bytes(); len(got) > 20 {
		t.Errorf("%d bytes", len(got))
	}
}

func TestLongLinesAreCut(t *testing.T) {
	var lines []string
	readLines(strings.NewReader(strings.Repeat("x", 3*maxLine)+"\n\nnext\r\nlast"), func(b []byte) { lines = append(lines, string(b)) })
	if len(lines) != 3 || len(lines[0]) != maxLine || lines[1] != "next" || lines[2] != "last" {
		t.Errorf("%d lines: %.20q", len(lines), lines)
	}
}

func TestAHostThatIsClosedStartsNothing(t *testing.T) {
	var h Host
	h.Close()
	h.Close()
	if _, err := h.Start(Spec{Path: "/bin/sh"}); err == nil {
		t.Error("it does")
	}
}

// In a hurry, a child that ignores SIGTERM is killed regardless of StopTimeout.
func TestStopInAHurry(t *testing.T) {
	for name, script := range map[string]string{
		"the child":    "trap '' TERM; echo up; while :; do sleep 0.01; done",
		"its children": "(trap '' TERM; echo up; while :; do sleep 0.01; done) & read x",
	} {
		t.Run(name, func(t *testing.T) {
			var h Host
			defer h.Close()
			hurry := make(chan struct{})
			c, err := h.Start(Spec{Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=/bin:/usr/bin"}, Dir: "/", StopTimeout: time.Hour, Hurry: hurry})
			if err != nil {
				t.Skip(err)
			}
			if _, err := c.Stdout.Read(make([]byte, 10)); err != nil {
				t.Fatal(err)
			}
			close(hurry)
			c.Stop()
		})
	}
}
