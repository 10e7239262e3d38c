// Package nonblock reads and writes pipes and sockets by system calls that never wait. Who
// has to wait does so in the poller of the Go runtime.
//
// A goroutine that waits in read(2), as one does that reads [os.Stdin], holds a processor of
// the scheduler until the runtime takes it away, and each system call that may wait wakes the
// thread that watches for that. Where a message is small and comes alone, these wakes cost
// more than the message.
package nonblock

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
)

// File is a pipe or a socket. Its methods may be called by many goroutines at once.
type File struct {
	*os.File
	conn   syscall.RawConn // nil for one that is read and written like any other file
	socket bool

	in, out half
}

// half is what a call of one direction works on, so that it allocates nothing.
type half struct {
	mu   sync.Mutex
	p    []byte
	n    int
	err  error
	once bool // does not wait
	try  func(fd uintptr) (done bool)
}

// most is what one system call moves, which no other waits for.
const most = 64 << 10

func newFile(f *os.File, socket bool) *File {
	conn, err := f.SyscallConn()
	if err != nil {
		return &File{File: f}
	}
	n := &File{File: f, conn: conn, socket: socket}
	n.in.try = func(fd uintptr) bool {
		h := &n.in
		h.n, h.err = receive(fd, h.p[:min(len(h.p), most)], n.socket)
		return !errors.Is(h.err, errAgain)
	}
	n.out.try = func(fd uintptr) bool {
		h := &n.out
		for h.n < len(h.p) {
			m, err := send(fd, h.p[h.n:min(len(h.p), h.n+most)], n.socket)
			if err != nil {
				h.err = err
				return h.once || !errors.Is(err, errAgain)
			}
			h.n += m
		}
		h.err = nil
		return true
	}
	return n
}

// Read is that of an [os.File].
func (f *File) Read(p []byte) (int, error) {
	if f.conn == nil || len(p) == 0 {
		return f.File.Read(p)
	}
	h := &f.in
	h.mu.Lock()
	defer h.mu.Unlock()
	h.p, h.n, h.err = p, 0, nil
	err := f.conn.Read(h.try)
	h.p = nil
	switch {
	case err != nil:
		return f.File.Read(p) // which has the error for a file that is closed or whose time is over
	case h.err != nil:
		return 0, &os.PathError{Op: "read", Path: f.Name(), Err: h.err}
	case h.n == 0:
		return 0, io.EOF
	}
	return h.n, nil
}

// Write is that of an [os.File].
func (f *File) Write(p []byte) (int, error) {
	if f.conn == nil {
		return f.File.Write(p)
	}
	n, over, err := f.write(p, false)
	if over {
		m, err := f.File.Write(p[n:]) // as for Read
		return n + m, err
	}
	return n, err
}

// TryWrite writes as much of p as goes without waiting, and returns how much that was. What
// is wrong when it is not all of it says the next Write.
func (f *File) TryWrite(p []byte) int {
	if f.conn == nil {
		return 0
	}
	n, _, _ := f.write(p, true)
	return n
}

// write writes. over says that the file is closed, or its time is over.
func (f *File) write(p []byte, once bool) (n int, over bool, err error) {
	h := &f.out
	h.mu.Lock()
	defer h.mu.Unlock()
	h.p, h.n, h.err, h.once = p, 0, nil, once
	over = f.conn.Write(h.try) != nil
	h.p = nil
	if h.err != nil && !errors.Is(h.err, errAgain) {
		err = &os.PathError{Op: "write", Path: f.Name(), Err: h.err}
	}
	return h.n, over, err
}
