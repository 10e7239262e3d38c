package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// errInterrupted is the cause of a context that Ctrl-C ended: nothing is waited for, where
// SIGTERM and SIGHUP let calls and servers end.
var errInterrupted = errors.New("interrupted")

// untilSignal returns a context that the first signal ends. The second has its usual
// effect, which ends the process.
func untilSignal() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() { // as long as the process
		var cause error
		if <-signals == os.Interrupt {
			cause = errInterrupted
		}
		signal.Stop(signals)
		cancel(cause)
	}()
	return ctx
}

// interrupted returns a channel that is closed when Ctrl-C ends the context.
func interrupted(ctx context.Context) <-chan struct{} {
	ch := make(chan struct{})
	context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), errInterrupted) {
			close(ch)
		}
	})
	return ch
}

// stdin reads what stands for a file. A read ends with the context, also where nothing
// comes and nothing ends.
func (a *app) stdin(ctx context.Context) io.Reader {
	r, w := io.Pipe()
	return lateReader{sync.OnceFunc(func() {
		context.AfterFunc(ctx, func() { w.CloseWithError(ctx.Err()) })
		go func() { // ends with stdin, or with the process
			_, err := io.Copy(w, a.in)
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
