package proc

import (
	"bufio"
	"bytes"
	"io"
	"slices"
	"sync"
)

const maxLine = 8 << 10

// readLines hands every line of r to f, until r ends. What of a line is beyond
// maxLine is left out.
func readLines(r io.Reader, f func([]byte)) {
	b := bufio.NewReaderSize(r, maxLine)
	for {
		line, more, err := b.ReadLine()
		if len(line) > 0 && f != nil {
			f(slices.Clone(line))
		}
		for more && err == nil {
			_, more, err = b.ReadLine()
		}
		if err != nil {
			return
		}
	}
}

// Tail keeps the last lines that fit into a number of bytes. The zero value keeps
// none. It may be used by many goroutines at once.
type Tail struct {
	Max int

	mu  sync.Mutex
	buf []byte
}

// Add appends a line.
func (t *Tail) Add(line []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(append(t.buf, line...), '\n')
	if len(t.buf) > 2*t.Max { // seldom, so that a line costs little
		t.buf = append(t.buf[:0], t.last()...)
	}
}

// Bytes returns a copy of what is kept.
func (t *Tail) Bytes() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Clone(t.last())
}

// last returns the last Max bytes, from the start of a line.
func (t *Tail) last() []byte {
	if len(t.buf) <= t.Max {
		return t.buf
	}
	cut := t.buf[len(t.buf)-t.Max:]
	if _, whole, ok := bytes.Cut(cut, []byte("\n")); ok && len(whole) > 0 {
		return whole
	}
	return cut
}
