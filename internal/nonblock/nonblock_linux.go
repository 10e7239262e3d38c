package nonblock

import (
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Known says whether there are such system calls on this system.
const Known = true

const errAgain = syscall.EAGAIN

// Of makes a File of a pipe of this process that is in the poller, as those of [os.Pipe]
// are. It stands for f: Close closes that.
func Of(f *os.File) *File {
	ours := false
	control(f, func(fd int) {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		ours = err == nil && flags&unix.O_NONBLOCK != 0
	})
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeNamedPipe == 0 || !ours || f.SetDeadline(time.Time{}) != nil {
		return &File{File: f}
	}
	return &File{f, callsOf(f, false)}
}

// Reopen makes a File of a pipe or a socket that may be shared with other processes, such as
// stdin: for them it stays as it is. nil when f is neither, or the system does not allow it.
// f stays open when the File is closed.
func Reopen(f *os.File) *File {
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	var again *os.File
	control(f, func(fd int) {
		switch info.Mode().Type() {
		case os.ModeNamedPipe:
			again = reopenPipe(fd)
		case os.ModeSocket:
			again = reopenSocket(fd)
		}
	})
	switch {
	case again == nil:
		return nil
	case again.SetDeadline(time.Time{}) != nil: // it is not in the poller
		again.Close()
		return nil
	}
	return &File{again, callsOf(again, info.Mode().Type() == os.ModeSocket)}
}

// Conn makes a connection of a TCP or Unix one whose calls do not wait. It stands for c: Close
// closes that. What is neither stays as it is.
func Conn(c net.Conn) net.Conn {
	switch c := c.(type) {
	case *net.TCPConn:
		if s := callsOf(c, true); s != nil {
			return &conn{c, s}
		}
	case *net.UnixConn:
		if s := callsOf(c, true); s != nil && c.LocalAddr().Network() == "unix" {
			return &conn{c, s}
		}
	}
	return c
}

// reopenPipe opens a pipe once more: whether calls wait is set for what was opened together.
func reopenPipe(fd int) *os.File {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil {
		return nil
	}
	f, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), flags&unix.O_ACCMODE|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	return f
}

// reopenSocket brings a socket into the poller, which takes none whose calls wait. They wait
// again before this returns: each of ours says for itself that it does not.
func reopenSocket(fd int) *os.File {
	if kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err != nil || kind != unix.SOCK_STREAM {
		return nil
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil {
		return nil
	}
	twin, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	if flags&unix.O_NONBLOCK == 0 {
		if unix.SetNonblock(fd, true) != nil {
			unix.Close(twin)
			return nil
		}
		defer func() { _ = unix.SetNonblock(fd, false) }()
	}
	return os.NewFile(uintptr(twin), "socket")
}

func control(f *os.File, do func(fd int)) {
	if c, err := f.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) { do(int(fd)) })
	}
}

// receive and send are system calls that the scheduler is not told of, because they never wait.
func receive(fd uintptr, p []byte, socket bool) (int, error) {
	if socket {
		return raw(unix.SYS_RECVFROM, fd, p, unix.MSG_DONTWAIT)
	}
	return raw(unix.SYS_READ, fd, p, 0)
}

func send(fd uintptr, p []byte, socket bool) (int, error) {
	if socket {
		return raw(unix.SYS_SENDTO, fd, p, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	}
	return raw(unix.SYS_WRITE, fd, p, 0)
}

func raw(call, fd uintptr, p []byte, flags uintptr) (int, error) {
	sending()
	for {
		n, _, errno := syscall.RawSyscall6(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), flags, 0, 0)
		switch errno {
		case 0:
			received(fd)
			return int(n), nil
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}
