package pgtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Freeze stops the processes of the server, with all their connections, until thaw is called.
func (s *Server) Freeze() (thaw func() error, err error) {
	frozen := []int{s.process.Process.Pid}
	thaw = func() error {
		var errs []error
		for _, pid := range frozen {
			// A process that ended just before it was stopped disappears once its parent continues.
			if err := syscall.Kill(pid, syscall.SIGCONT); err != nil && !errors.Is(err, syscall.ESRCH) {
				errs = append(errs, fmt.Errorf("process %d: %w", pid, err))
			}
		}
		return errors.Join(errs...)
	}
	if err := syscall.Kill(frozen[0], syscall.SIGSTOP); err != nil { // prevents new processes
		return nil, err
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the process has ended
		}
		// The name of a process may have spaces and ends with the last parenthesis (proc(5)).
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if len(fields) < 2 || fields[1] != strconv.Itoa(frozen[0]) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return thaw, err
		}
		if err := syscall.Kill(pid, syscall.SIGSTOP); err == nil { // an error means that it has ended
			frozen = append(frozen, pid)
		}
	}
	return thaw, nil
}
