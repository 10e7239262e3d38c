package proc

import (
	"bufio"
	"bytes"
	"io"
	"slices"
	"sync"
)

const maxLine = 8 << 10

// readLines calls f with each line of r until r ends. It cuts each line to maxLine bytes.
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

// Tail keeps the last lines that fit into Max bytes. The zero value keeps no lines. It is safe for
// concurrent use.
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
	if len(t.buf) > 2*t.Max { // rarely, to keep the cost per line low
		t.buf = append(t.buf[:0], t.last()...)
	}
}

// Bytes returns a copy of the kept lines.
func (t *Tail) Bytes() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Clone(t.last())
}

// last returns at most the last Max bytes, beginning at the start of a line.
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
