// Package lines writes lines of a log together, so that many cost one write.
package lines

import (
	"io"
	"sync"
	"time"
)

const (
	most = 64 << 10               // bytes that are kept
	wait = 100 * time.Millisecond // how long a line is kept
)

// Writer keeps what is written to it for a tenth of a second. Its methods may be called by
// many goroutines at once; the Writer below is called by one at a time.
type Writer struct {
	mu     sync.Mutex
	w      io.Writer
	kept   []byte
	later  *time.Timer // set while something is kept
	closed bool
	err    error // of a write that nobody waited for
}

// New returns a writer over w, which Close does not close.
func New(w io.Writer) *Writer { return &Writer{w: w} }

// Write keeps a line. The error may be that of an earlier line.
func (l *Writer) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = append(l.kept, line...)
	switch {
	case l.closed || len(l.kept) >= most:
		l.flush()
	case l.later == nil:
		l.later = time.AfterFunc(wait, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.flush()
		})
	}
	err := l.err
	l.err = nil
	return len(line), err
}

// Close writes what is kept. Lines that come later are written at once.
func (l *Writer) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.flush()
	return l.err
}

// flush is called under mu.
func (l *Writer) flush() {
	if l.later != nil {
		l.later.Stop()
		l.later = nil
	}
	if len(l.kept) == 0 {
		return
	}
	if _, err := l.w.Write(l.kept); err != nil {
		l.err = err
	}
	l.kept = l.kept[:0]
}
