package footprint

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// dropProgram gives back the pages of the program's own file. Only what is mapped read-only and as it is in the
// file: a debugger or a tracer that put breakpoints into the program has pages of its own there, which would be lost.
func dropProgram() error {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return err
	}
	defer f.Close()
	all, err := mappings(f, exe)
	if err != nil {
		return err
	}
	for _, m := range all {
		if _, _, errno := syscall.Syscall(syscall.SYS_MADVISE, m.from, m.to-m.from, syscall.MADV_DONTNEED); errno != 0 {
			return errno
		}
	}
	return nil
}

// mapping is a part of the address space.
type mapping struct{ from, to uintptr }

// mappings returns where a file is mapped and nothing of it was or can be changed (proc_pid_smaps(5)).
func mappings(smaps io.Reader, file string) (all []mapping, err error) {
	var m *mapping
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		field := strings.Fields(lines.Text())
		switch {
		case len(field) >= 5 && !strings.HasSuffix(field[0], ":"):
			m = nil
			if strings.HasSuffix(lines.Text(), " "+file) && (field[1] == "r-xp" || field[1] == "r--p") {
				from, to, _ := strings.Cut(field[0], "-")
				a, err1 := strconv.ParseUint(from, 16, 64)
				b, err2 := strconv.ParseUint(to, 16, 64)
				if err1 == nil && err2 == nil && a < b {
					m = &mapping{uintptr(a), uintptr(b)}
				}
			}
		case m != nil && len(field) > 1 && field[0] == "Anonymous:":
			if field[1] == "0" {
				all = append(all, *m)
			}
			m = nil
		}
	}
	return all, lines.Err()
}
