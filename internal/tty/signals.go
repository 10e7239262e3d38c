// Package tty connects a command with the person who runs it: signals, stdin, and the browser.
package tty

import (
	"context"
	"errors"
	"math"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// ErrInterrupted is the cause of a context that Ctrl-C ended. Commands then end at once. After SIGTERM and SIGHUP,
// they wait for calls and servers.
var ErrInterrupted = errors.New("interrupted")

// UntilSignal returns a context that the first signal ends. A second signal ends the process.
func UntilSignal() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() { // runs as long as the process
		var cause error
		if <-signals == os.Interrupt {
			cause = ErrInterrupted
		}
		signal.Stop(signals)
		cancel(cause)
	}()
	return ctx
}

// KeepOnBrokenPipe turns a write to a closed stdout or stderr into an ordinary error, until undo is
// called. By default such a write ends the process. It does not affect children.
func KeepOnBrokenPipe() (undo func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGPIPE)
	return func() { signal.Stop(signals) }
}

// Interrupted returns a channel that is closed when Ctrl-C ends the context.
func Interrupted(ctx context.Context) <-chan struct{} { return Hurry(ctx, math.MaxInt64) }

// Hurry returns a channel that is closed when Ctrl-C ends the context, or after a delay when something else ends it.
func Hurry(ctx context.Context, after time.Duration) <-chan struct{} {
	ch := make(chan struct{})
	context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), ErrInterrupted) {
			after = 0
		}
		time.AfterFunc(after, func() { close(ch) })
	})
	return ch
}
