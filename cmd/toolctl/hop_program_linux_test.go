package main

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// program is a process that a test started. It ends with the test.
type program struct {
	*exec.Cmd
	url  string
	logs string // file with its stderr
}

// again returns a command that runs this test program as one of the commands of TestMain.
func again(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := command(self, args...)
	cmd.Args[0] = name
	return cmd
}

// linked returns a path at which this test program is one of the commands of TestMain.
func linked(t testing.TB, name string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	return link
}

// command returns a program that ends with this process.
func command(path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// startPiped starts a program and returns the other ends of its stdin and stdout.
func startPiped(t testing.TB, cmd *exec.Cmd) (in io.WriteCloser, out io.Reader) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if out, err = cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return in, out
}

// launch starts a program that prints its address and ends when its stdin does.
func launch(t testing.TB, cmd *exec.Cmd) *program {
	t.Helper()
	cmd.Stderr = os.Stderr
	in, out := startPiped(t, cmd)
	t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return &program{Cmd: cmd, url: strings.TrimSpace(line)}
}

// launchServe runs the toolctl command cmd with serve over HTTP. Its log goes to a file.
func launchServe(t testing.TB, cmd *exec.Cmd, args ...string) *program {
	t.Helper()
	p := &program{Cmd: cmd, logs: filepath.Join(t.TempDir(), "serve.log")}
	address := freeAddress(t)
	cmd.Args = append(append(cmd.Args, "serve", "--http", address), args...)
	log, err := os.Create(p.logs)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(p.logs)
			t.Logf("the log of serve ends with:\n%s", text[max(0, len(text)-1000):])
		}
	})
	p.url = "http://" + address + "/mcp"
	untilListening(t, address)
	return p
}

// freeAddress returns an address at which nothing listens.
func freeAddress(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

func untilListening(t testing.TB, address string) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); ; <-tick.C {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
			return
		}
		if time.Since(began) > 30*time.Second {
			t.Fatal(err)
		}
	}
}

// cpu returns the processor time that the process has used.
func (p *program) cpu(t testing.TB) time.Duration {
	t.Helper()
	var ts unix.Timespec
	// This is the clock of another process (clock_getcpuclockid(3)).
	if err := unix.ClockGettime(int32(^p.Process.Pid)<<3|2, &ts); err != nil {
		t.Fatal(err)
	}
	return time.Duration(ts.Nano())
}

// memory reads a field of /proc/PID/status in MB, such as RssAnon, the private memory of the process, or VmHWM, its
// maximum including the pages of the program's file.
func (p *program) memory(t testing.TB, field string) float64 {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(p.Process.Pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			kb, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
			if err != nil {
				t.Fatal(err)
			}
			return float64(kb) / 1024
		}
	}
	t.Fatalf("no %s in %s", field, text)
	return 0
}

// buildToolctl builds the program as it is released. If TOOLCTL_BIN is set, it uses that program.
func buildToolctl(t testing.TB) string {
	t.Helper()
	if bin := os.Getenv("TOOLCTL_BIN"); bin != "" {
		return bin
	}
	bin := filepath.Join(t.TempDir(), "toolctl")
	cmd := exec.Command("go", "build", "-trimpath", "-o", bin, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build toolctl: %v\n%s", err, out)
	}
	return bin
}
