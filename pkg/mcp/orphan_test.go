package mcp_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
)

// spawnGrandchild starts a process that outlives its parent unless its group is ended.
func spawnGrandchild() (int, error) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVar+"=deaf")
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	return cmd.Process.Pid, nil
}

// runParent acts as a toolctl that holds a session, prints the PIDs of its child and grandchild, and waits
// to be killed.
func runParent() int {
	u := mcp.NewUpstreams([]*v1.MCPServer{stdio("s", "sdk")}, mcp.Options{})
	for _, tool := range []string{"pid", "spawn"} {
		res, err := u.Call(context.Background(), key("s"), tool, nil, false)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Println(string(res.Content))
	}
	select {}
}

// alive reports whether a process is running. A zombie is not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	if runtime.GOOS != "linux" {
		return true
	}
	threads, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/stat")
	for _, file := range threads {
		stat, err := os.ReadFile(file)
		_, rest, _ := strings.Cut(string(stat), ") ")
		if err == nil && !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X") {
			return true
		}
	}
	return false
}

func waitGone(t testing.TB, pid int) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); alive(pid); {
		if time.Now().After(end) {
			t.Fatalf("process %d still runs", pid)
		}
		runtime.Gosched()
	}
}

// childrenOf returns the processes whose parent is pid.
func childrenOf(t testing.TB, pid int) []int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		t.Skip("no /proc")
	}
	var children []int
	for _, file := range stats {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(data), ") ")
		fields := strings.Fields(rest)
		if len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			child, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			children = append(children, child)
		}
	}
	return children
}

func TestNoOrphanAfterKillOfTheParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the kernel's own help is tested on Linux")
	}
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), roleVar+"=parent")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	parent.Stderr = os.Stderr
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	in := bufio.NewScanner(out)
	for len(pids) < 2 && in.Scan() {
		pid, err := strconv.Atoi(in.Text())
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	if len(pids) < 2 {
		t.Fatal("the parent did not get to work")
	}
	guard := slices.DeleteFunc(childrenOf(t, parent.Process.Pid), func(pid int) bool { return pid == pids[0] })
	if len(guard) != 1 {
		t.Errorf("beside the server, the parent has the children %v", guard)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	for _, pid := range append(pids, guard...) {
		waitGone(t, pid)
	}
}
