package proc

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// helperPath returns the path of this running program, even if its file was replaced.
func helperPath() (string, error) { return "/proc/self/exe", nil }

// isolated gives cmd its own namespaces: no network, and its own view of mounts and processes. The user
// stays the same, and its rights over mounts apply only inside the namespace.
func isolated(cmd *exec.Cmd) error {
	a := cmd.SysProcAttr
	a.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	a.AmbientCaps = []uintptr{unix.CAP_SETPCAP, unix.CAP_SYS_ADMIN, unix.CAP_SYS_RESOURCE}
	return nil
}

// isolate runs as the first process of a sandbox. It sets up the view of files and starts the second
// helper, which becomes the program. When that program ends, isolate returns, and the kernel kills all
// remaining processes of the sandbox.
func (p *plan) isolate(status *os.File) (int, error) {
	if os.Getpid() != 1 {
		return 0, errors.New(sandboxFailed + "the helper is not the first process of its namespace")
	}
	// The first process ignores signals without a handler, and the program must not inherit that.
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	if err := p.view(); err != nil {
		return 0, errors.New(sandboxFailed + err.Error())
	}
	r, w, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	child, err := os.StartProcess("/proc/self/exe", []string{helperName}, &os.ProcAttr{
		Env: []string{}, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr, r, status},
	})
	if err != nil {
		return 0, err
	}
	next := *p
	next.Init = false
	err = json.NewEncoder(w).Encode(next)
	for _, f := range []*os.File{r, w, status, os.Stdin, os.Stdout, os.Stderr} {
		f.Close()
	}
	if err != nil {
		return 126, nil //nolint:nilerr // the child reports the error
	}
	if p.Limits.Processes > 0 {
		go boundProcesses(p.Limits.Processes)
	}
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 126, nil //nolint:nilerr // no child is left to wait for
		case pid == child.Pid && ws.Signaled():
			return 128 + int(ws.Signal()), nil // the exit code that a shell uses for a signal
		case pid == child.Pid:
			return ws.ExitStatus(), nil
		}
	}
}

// boundProcesses kills all processes of the sandbox if their number, without the first process, exceeds
// most. It is needed because RLIMIT_NPROC does not apply to root.
func boundProcesses(most int) {
	const often = 20 * time.Millisecond
	for range time.Tick(often) {
		n := 0
		names, _ := os.ReadDir("/proc")
		for _, e := range names {
			if _, err := strconv.Atoi(e.Name()); err == nil {
				n++
			}
		}
		if n-1 > most {
			_ = syscall.Kill(-1, syscall.SIGKILL)
		}
	}
}

// devices are the files of /dev that programs expect.
var devices = []string{"null", "zero", "full", "random", "urandom"}

// view makes all files read-only except those of the plan, hides devices and the sockets of /run, and
// mounts a /proc that shows only the sandbox's own processes.
func (p *plan) view() error {
	step := func(what string, err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return step("make the mounts private", err)
	}
	for _, dir := range p.Writable {
		if err := unix.Mount(dir, dir, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return step("mount "+dir, err)
		}
	}
	nodes := map[string]int{}
	for _, name := range devices {
		if fd, err := unix.OpenTree(unix.AT_FDCWD, "/dev/"+name, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC); err == nil {
			nodes[name] = fd
		}
	}
	if err := p.empty("/dev"); err != nil {
		return step("mount /dev", err)
	}
	for name, fd := range nodes {
		if err := os.WriteFile("/dev/"+name, nil, 0o600); err != nil {
			return err
		}
		if err := unix.MoveMount(fd, "", unix.AT_FDCWD, "/dev/"+name, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return step("mount /dev/"+name, err)
		}
		unix.Close(fd)
	}
	for name, target := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"} {
		if err := os.Symlink(target, "/dev/"+name); err != nil {
			return err
		}
	}
	if info, err := os.Lstat("/run"); err == nil && info.IsDir() && !p.needs("/run") {
		if err := p.empty("/run"); err != nil {
			return step("mount /run", err)
		}
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return step("mount /proc", err)
	}
	if n := p.Limits.Processes; n > 0 {
		// Since Linux 6.14 a sandbox has its own process numbers, of which the kernel reserves the first 300.
		// Before that, boundProcesses has to be faster than a fork bomb.
		_ = os.WriteFile("/proc/sys/kernel/pid_max", []byte(strconv.Itoa(301+n)), 0)
	}
	// In its own user namespace the program would have all capabilities, and could reach parts of the kernel
	// that are otherwise reserved for root.
	if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
		return step("forbid further user namespaces", err)
	}
	const flags = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: flags}); err != nil {
		return step("make the files read-only", err)
	}
	for name := range nodes {
		if err := unix.MountSetattr(unix.AT_FDCWD, "/dev/"+name, 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_RDONLY}); err != nil {
			return step("mount /dev/"+name, err)
		}
	}
	for _, dir := range p.Writable {
		if err := unix.MountSetattr(unix.AT_FDCWD, dir, 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return step("make "+dir+" writable", err)
		}
	}
	return nil
}

// empty hides a folder behind an empty one.
func (p *plan) empty(dir string) error {
	return unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "size=1m,mode=755")
}

// needs reports whether the child uses a path below a folder.
func (p *plan) needs(dir string) bool {
	for _, path := range append([]string{p.Path, p.Dir}, p.Writable...) {
		if real, err := filepath.EvalSymlinks(path); err == nil && strings.HasPrefix(real+"/", dir+"/") {
			return true
		}
	}
	return false
}

// harden gives up everything that a program could use to gain privileges, and in a sandbox also the
// privileges that the helper needed to create it.
func (p *plan) harden() error {
	// The child must not inherit files that this program received at its start and did not open itself.
	_ = unix.CloseRange(planFile, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	if !p.Sandbox {
		return nil
	}
	if n := p.Limits.Processes; n > 0 {
		if err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: uint64(n), Max: uint64(n)}); err != nil {
			return fmt.Errorf("limit the processes: %w", err)
		}
	}
	const noRoot = 1<<0 | 1<<1 | 1<<2 | 1<<3 // SECBIT_NOROOT and SECBIT_NO_SETUID_FIXUP, locked
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, noRoot, 0, 0, 0); err != nil {
		return fmt.Errorf("drop the rights of root: %w", err)
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0) // fails for a capability that this kernel does not have
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if _, _, errno := unix.RawSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&none[0])), 0); errno != 0 {
		return fmt.Errorf("drop capabilities: %w", errno)
	}
	return nil
}
