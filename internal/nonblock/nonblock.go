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
	calls *calls // nil for one that is read and written like any other file
}

// Read is that of an [os.File].
func (f *File) Read(p []byte) (int, error) {
	if f.calls == nil || len(p) == 0 {
		return f.File.Read(p)
	}
	n, over, err := f.calls.read(p, false)
	switch {
	case over:
		return f.File.Read(p) // which has the error for a file that is closed or whose time is over
	case err != nil:
		return 0, &os.PathError{Op: "read", Path: f.Name(), Err: err}
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// Write is that of an [os.File].
func (f *File) Write(p []byte) (int, error) {
	if f.calls == nil {
		return f.File.Write(p)
	}
	n, over, err := f.calls.write(p, false)
	switch {
	case over:
		m, err := f.File.Write(p[n:]) // as for Read
		return n + m, err
	case err != nil:
		return n, &os.PathError{Op: "write", Path: f.Name(), Err: err}
	}
	return n, nil
}

// TryWrite writes as much of p as goes without waiting, and returns how much that was. What
// is wrong when it is not all of it says the next Write.
func (f *File) TryWrite(p []byte) int {
	if f.calls == nil {
		return 0
	}
	n, _, _ := f.calls.write(p, true)
	return n
}

// calls are the system calls of a pipe or a socket that is in the poller.
type calls struct {
	conn    syscall.RawConn
	socket  bool
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

// callsOf makes the calls of what has such a connection; nil when it has none.
func callsOf(c syscall.Conn, socket bool) *calls {
	conn, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	s := &calls{conn: conn, socket: socket}
	s.in.try = func(fd uintptr) bool {
		h := &s.in
		h.n, h.err = receive(fd, h.p[:min(len(h.p), most)], s.socket)
		return h.once || !errors.Is(h.err, errAgain)
	}
	s.out.try = func(fd uintptr) bool {
		h := &s.out
		for h.n < len(h.p) {
			m, err := send(fd, h.p[h.n:min(len(h.p), h.n+most)], s.socket)
			if err != nil {
				h.err = err
				return h.once || !errors.Is(err, errAgain)
			}
			h.n += m
		}
		h.err = nil
		return true
	}
	return s
}

// read reads into p, which is not empty; 0 bytes are the end. The error is errAgain when it may not wait and would have
// to. over says that the connection is closed, or its time is over.
func (s *calls) read(p []byte, once bool) (n int, over bool, err error) {
	h := &s.in
	h.mu.Lock()
	defer h.mu.Unlock()
	h.p, h.n, h.err, h.once = p, 0, nil, once
	over = s.conn.Read(h.try) != nil
	h.p = nil
	return h.n, over, h.err
}

// write writes. over is as for read.
func (s *calls) write(p []byte, once bool) (n int, over bool, err error) {
	h := &s.out
	h.mu.Lock()
	defer h.mu.Unlock()
	h.p, h.n, h.err, h.once = p, 0, nil, once
	over = s.conn.Write(h.try) != nil
	h.p = nil
	if h.err != nil && !errors.Is(h.err, errAgain) {
		err = h.err
	}
	return h.n, over, err
}
