package nonblock_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"toolctl.dev/toolctl/internal/nonblock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ends makes both ends of a stream whose calls wait, as a program gets them that is started.
func ends(t *testing.T, kind string) (r, w *os.File) {
	t.Helper()
	var fds [2]int
	err := unix.Pipe2(fds[:], unix.O_CLOEXEC)
	if kind == "socket" {
		fds, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	r, w = os.NewFile(uintptr(fds[0]), "r"), os.NewFile(uintptr(fds[1]), "w")
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func reopened(t *testing.T, f *os.File) *nonblock.File {
	t.Helper()
	n := nonblock.Reopen(f)
	if n == nil {
		t.Fatal("it cannot be opened once more")
	}
	t.Cleanup(func() { n.Close() })
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_NONBLOCK != 0 {
		t.Errorf("for others its calls no longer wait: %#x %v", flags, err)
	}
	return n
}

// What is written is read, in order, however much it is; the end of one side is that of the other.
func TestReopen(t *testing.T) {
	for _, kind := range []string{"pipe", "socket"} {
		t.Run(kind, func(t *testing.T) {
			r, w := ends(t, kind)
			in, out := reopened(t, r), reopened(t, w)
			text := bytes.Repeat([]byte("0123456789abcdef"), 100_000) // more than a pipe or a socket holds
			wrote := make(chan error, 1)
			go func() {
				n, err := out.Write(text)
				if err == nil && n != len(text) {
					err = io.ErrShortWrite
				}
				wrote <- err
				out.Close()
				w.Close()
			}()
			got, err := io.ReadAll(in)
			if err != nil || !bytes.Equal(got, text) {
				t.Errorf("%d bytes of %d, %v", len(got), len(text), err)
			}
			if err := <-wrote; err != nil {
				t.Error(err)
			}
		})
	}
}

// A write to what nobody reads any more fails, and the process goes on.
func TestNobodyReads(t *testing.T) {
	for _, kind := range []string{"pipe", "socket"} {
		t.Run(kind, func(t *testing.T) {
			r, w := ends(t, kind)
			out := reopened(t, w)
			r.Close()
			if n := out.TryWrite([]byte("x")); n != 0 {
				t.Errorf("%d bytes written", n)
			}
			if _, err := out.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
				t.Error(err)
			}
		})
	}
}

// Close ends a Read and a Write that wait; what was opened first stays open.
func TestCloseEndsWaiting(t *testing.T) {
	for _, kind := range []string{"pipe", "socket"} {
		t.Run(kind, func(t *testing.T) {
			r, w := ends(t, kind)
			in, out := reopened(t, r), reopened(t, w)
			ended := make(chan error)
			go func() {
				_, err := in.Read(make([]byte, 1))
				ended <- err
			}()
			in.Close()
			if err := <-ended; !errors.Is(err, os.ErrClosed) {
				t.Error(err)
			}
			go func() {
				_, err := out.Write(make([]byte, 4<<20))
				ended <- err
			}()
			if _, err := io.ReadFull(r, make([]byte, 100)); err != nil { // it has begun
				t.Error(err)
			}
			out.Close()
			if err := <-ended; !errors.Is(err, os.ErrClosed) {
				t.Error(err)
			}
		})
	}
}

// A pipe of ours takes deadlines, and TryWrite no more than there is room for.
func TestOf(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	in, out := nonblock.Of(r), nonblock.Of(w)
	defer in.Close()
	n := out.TryWrite(make([]byte, 1<<20))
	if n == 0 || n == 1<<20 || out.TryWrite([]byte("x")) != 0 {
		t.Errorf("%d bytes are written to a pipe without waiting", n)
	}
	past := time.Unix(1, 0)
	if err := errors.Join(in.SetReadDeadline(past), out.SetWriteDeadline(past)); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	if _, err := in.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	if err := in.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	out.Close()
	if got, err := io.ReadAll(in); err != nil || len(got) != n {
		t.Errorf("%d bytes of %d, %v", len(got), n, err)
	}
}

// What is neither a pipe nor a stream socket is left alone.
func TestOtherFiles(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if nonblock.Reopen(f) != nil {
		t.Error("a file is reopened")
	}
	if _, err := nonblock.Of(f).Write([]byte("x")); err != nil || nonblock.Of(f).TryWrite([]byte("x")) != 0 {
		t.Error(err)
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		s := os.NewFile(uintptr(fd), "datagrams")
		defer s.Close()
		if nonblock.Reopen(s) != nil {
			t.Error("a socket of datagrams is reopened")
		}
	}
}
