package tty

import (
	"bufio"
	"context"
	"io"
	"sync"
)

// Stdin reads what stands for a file. A read ends with the context, also where nothing
// comes and nothing ends.
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

// Lines are what a person types, a line at a time. Its methods may be called by many
// goroutines at once.
type Lines struct {
	mu sync.Mutex // held while one asks
	in *bufio.Reader
}

// NewLines reads lines of in.
func NewLines(in io.Reader) *Lines { return &Lines{in: bufio.NewReader(in)} }

// Ask calls show, which asks something, and returns the next line. Whoever asks meanwhile
// waits. The line that ends with the input has the error of that.
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
