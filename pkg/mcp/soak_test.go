package mcp_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
)

// TestSoak calls a server that kills itself in one of a hundred calls. Every call gets its own result or a
// typed error, and no process or file remains. SOAK=1 makes it 10,000 calls.
func TestSoak(t *testing.T) {
	total := 1500
	if os.Getenv("SOAK") != "" {
		total = 10_000
	}
	if testing.Short() {
		total = 200
	}
	before := descriptors(t)
	u := mcp.NewUpstreams([]*v1.MCPServer{stdio("s", "sdk")}, mcp.Options{StopTimeout: 300 * time.Millisecond})
	began := time.Now()
	var answered, failed atomic.Int64
	var callers sync.WaitGroup
	next := make(chan int)
	for range 16 {
		callers.Go(func() {
			for i := range next {
				want := fmt.Sprintf(`{"n":%d}`, i)
				res, err := u.Call(t.Context(), key("s"), "flaky", []byte(want), i%2 == 0)
				switch {
				case err == nil && string(res.Content) == want:
					answered.Add(1)
				case err == nil:
					t.Errorf("call %d got the answer %s", i, res.Content)
				case errors.As(err, new(*v1.MCPError)):
					failed.Add(1)
				default:
					t.Errorf("call %d: %v", i, err)
				}
			}
		})
	}
	for i := range total {
		next <- i
	}
	close(next)
	callers.Wait()
	st, _ := u.State(key("s"))
	if err := u.Close(); err != nil {
		t.Error(err)
	}
	t.Logf("%d calls in %s: %d answered, %d failed with a typed error, %d starts", total, time.Since(began).Round(time.Millisecond), answered.Load(), failed.Load(), st.Starts)
	if answered.Load()+failed.Load() != int64(total) {
		t.Errorf("%d answered and %d failed of %d", answered.Load(), failed.Load(), total)
	}
	if st.Starts < 2 {
		t.Error("the server never crashed")
	}
	if left := childrenOf(t, os.Getpid()); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

// descriptors counts the open files of this process.
func descriptors(t testing.TB) int {
	t.Helper()
	fds, err := filepath.Glob("/proc/" + strconv.Itoa(os.Getpid()) + "/fd/*")
	if err != nil || len(fds) == 0 {
		t.Skip("no /proc")
	}
	return len(fds)
}
