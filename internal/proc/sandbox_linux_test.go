package proc

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// sandboxed runs a shell script in a sandbox and returns its output and outcome.
func sandboxed(t *testing.T, script string, limits Limits, writable ...string) string {
	t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell")
	}
	var h Host
	defer h.Close()
	var stderr Tail
	stderr.Max = 4 << 10
	c, err := h.Start(Spec{Path: sh, Args: []string{"-c", script}, Env: []string{"PATH=/bin:/usr/bin"}, Dir: "/", StopTimeout: time.Second,
		Limits: limits, Sandbox: &Sandbox{Writable: writable}, Stderr: stderr.Add})
	if errors.Is(err, ErrNoSandbox) {
		t.Skipf("NOT TESTED: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(c.Stdout)
	if err != nil {
		t.Fatal(err)
	}
	outcome := c.Outcome()
	c.Stop()
	return string(out) + string(stderr.Bytes()) + outcome
}

func TestSandbox(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	for _, d := range []string{in, out} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(out, filepath.Join(in, "link")); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	for _, tt := range []struct {
		name, script string
		want         []string
		not          string
	}{
		{"runs", "echo hi; exit 3", []string{"hi\n", "exit status 3"}, ""},
		{"writes where it may", "echo a >" + in + "/a && cat " + in + "/a", []string{"a\n", "exit status 0"}, ""},
		{"writes nowhere else", "echo a >" + out + "/a", []string{"ead-only file system"}, ""},
		{"not through a symlink", "echo a >" + in + "/link/a", []string{"ead-only file system"}, ""},
		{"not in /tmp or /", "echo a >/tmp/toolctl-was-here; echo b >/toolctl-was-here; mkdir /etc/toolctl", []string{"ead-only"}, "exit status 0"},
		{"undoes no mount", "mount -o remount,rw / 2>&1; umount /dev 2>&1; echo a >/toolctl-was-here", []string{"ead-only"}, "exit status 0"},
		{"undoes no mount in a namespace of its own", "unshare -Urm sh -c 'mount -o remount,rw /; echo a >/toolctl-was-here' 2>&1", nil, "exit status 0"},
		{"makes no namespace of users, where it would have all capabilities again", "unshare -U sh -c 'grep CapEff /proc/self/status' 2>&1; cat /proc/sys/user/max_user_namespaces; echo 9 >/proc/sys/user/max_user_namespaces", []string{"unshare failed: No space left on device\n0\n", "annot create"}, "CapEff"},
		{"has no devices but the harmless", "ls /dev; echo a >/dev/null; mknod " + in + "/sda b 8 0; head -c1 " + in + "/sda", []string{"null\n"}, "vda"},
		{"changes no setting of the kernel", "echo x >/proc/sys/kernel/core_pattern; echo 1 >/proc/sys/vm/drop_caches", []string{"annot create"}, "exit status 0"},
		{"sees its own processes alone", "for p in /proc/[0-9]*; do cat $p/environ; done | tr '\\0' '\\n' | sort | uniq -c", nil, "HOME="},
		{"has no capability", "grep CapEff /proc/self/status; grep CapBnd /proc/self/status", []string{"CapEff:\t0000000000000000", "CapBnd:\t0000000000000000"}, ""},
		{"reaches no network", fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d && echo reached; cat /proc/net/dev | wc -l", port), nil, "reached"},
		{"no more files than it was given", "ls /proc/self/fd | wc -l", []string{"4\n"}, ""}, // 0, 1, 2 and that of ls
	} {
		t.Run(tt.name, func(t *testing.T) {
			script := tt.script
			if strings.Contains(script, "/dev/tcp") {
				if _, err := exec.LookPath("bash"); err != nil {
					t.Skip("NOT TESTED: no bash")
				}
				script = "bash -c '" + script + "'"
			}
			got := sandboxed(t, script, Limits{}, in)
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
			}
			if tt.not != "" && strings.Contains(got, tt.not) {
				t.Errorf("got %q", got)
			}
		})
	}
	for _, path := range []string{"/toolctl-was-here", "/tmp/toolctl-was-here", "/etc/toolctl", filepath.Join(out, "a")} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s was written", path)
		}
	}
}

func TestLimits(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		name, script string
		limits       Limits
		want         string
	}{
		{"processor time", "while :; do :; done", Limits{CPUSeconds: 1}, "exit status 1"}, // 152 is SIGXCPU, 137 SIGKILL
		{"file size", "head -c 100000 /dev/zero >" + dir + "/big; wc -c <" + dir + "/big", Limits{FileBytes: 1000}, "1000\n"},
		{"memory", "head -c 300000000 /dev/zero | tail -c 300000000 >/dev/null; exit $?", Limits{MemoryBytes: 100 << 20}, "exit status"},
		// At most 400, so that a failing limit does not affect other processes of the user.
		{"processes", "i=0; while [ $i -lt 400 ]; do sleep 100 & i=$((i+1)); done; echo all of them", Limits{Processes: 20}, "exit status"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := sandboxed(t, tt.script, tt.limits, dir)
			if !strings.Contains(got, tt.want) || tt.name != "file size" && strings.Contains(got, "exit status 0") || strings.Contains(got, "all of them") {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// A process that left its group and ignores every signal still ends with the sandbox.
func TestTheSandboxEndsWithAllThatIsInIt(t *testing.T) {
	got := sandboxed(t, "(trap '' TERM HUP INT; setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 1; done') & echo started", Limits{})
	if !strings.HasPrefix(got, "started\n") { // and the pipe, which the rest holds, has ended
		t.Errorf("got %q", got)
	}
}

func TestStartWithLimitsAlone(t *testing.T) {
	var h Host
	defer h.Close()
	c, err := h.Start(Spec{Path: "/bin/sh", Args: []string{"-c", "ulimit -t; ulimit -c; pwd; echo $A $0"}, Env: []string{"A=b"}, Dir: "/", StopTimeout: time.Second, Limits: Limits{CPUSeconds: 7}})
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(c.Stdout)
	if err != nil || string(out) != "7\n0\n/\nb /bin/sh\n" {
		t.Errorf("got %q, %v", out, err)
	}
	c.Stop()
	for _, spec := range []Spec{{Path: "/no/such/program"}, {Path: "/bin/sh", Dir: "/no/such/folder"}} {
		spec.Limits = Limits{CPUSeconds: 1}
		if _, err := h.Start(spec); err == nil || !strings.Contains(err.Error(), "no such file") {
			t.Errorf("got %v", err)
		}
	}
}

// A user who starts the program under the helper's name gains nothing.
func TestTheHelperDoesNothingByItself(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := &exec.Cmd{Path: self, Args: []string{helperName}, Env: []string{}}
	out, err := cmd.CombinedOutput()
	if err == nil || err.Error() != "exit status 126" || len(out) > 0 {
		t.Errorf("got %q, %v", out, err)
	}
}
