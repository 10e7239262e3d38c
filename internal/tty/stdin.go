package tty

import (
	"bufio"
	"context"
	"io"
	"sync"
)

// Stdin returns a reader for stdin. A read ends with the context even if no input arrives.
func Stdin(ctx context.Context, in io.Reader) io.Reader {
	r, w := io.Pipe()
	return lateReader{sync.OnceFunc(func() {
		context.AfterFunc(ctx, func() { w.CloseWithError(ctx.Err()) })
		go func() { // ends with stdin, or with the process
			_, err := io.Copy(w, in)
			w.CloseWithError(err)
		}()
	}), r}
}

// lateReader calls start before the first read.
type lateReader struct {
	start func()
	io.Reader
}

func (r lateReader) Read(p []byte) (int, error) {
	r.start()
	return r.Reader.Read(p)
}

// Lines reads the lines that a person types. Its methods are safe for concurrent use.
type Lines struct {
	mu sync.Mutex // held during a question
	in *bufio.Reader
}

// NewLines returns a reader of the lines of in.
func NewLines(in io.Reader) *Lines { return &Lines{in: bufio.NewReader(in)} }

// Ask calls show, which prints a question, and returns the next line. Concurrent questions wait for each other. If the
// input ends without a line break, Ask returns the last line with an error.
func (l *Lines) Ask(ctx context.Context, show func()) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	show()
	type answer struct {
		line string
		err  error
	}
	got := make(chan answer, 1)
	go func() { // ends with the line, or with the process
		line, err := l.in.ReadString('\n')
		got <- answer{line, err}
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case a := <-got:
		return a.line, a.err
	}
}
