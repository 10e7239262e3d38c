// Package tty is what a command shares with the person who runs it: signals, stdin and
// the browser.
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

// ErrInterrupted is the cause of a context that Ctrl-C ended: nothing is waited for, where
// SIGTERM and SIGHUP let calls and servers end.
var ErrInterrupted = errors.New("interrupted")

// UntilSignal returns a context that the first signal ends. The second has its usual
// effect, which ends the process.
func UntilSignal() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() { // as long as the process
		var cause error
		if <-signals == os.Interrupt {
			cause = ErrInterrupted
		}
		signal.Stop(signals)
		cancel(cause)
	}()
	return ctx
}

// KeepOnBrokenPipe makes a write to stdout or stderr that nobody reads any longer an error like
// another, until undo is called: else it ends the process. Children have the usual effect.
func KeepOnBrokenPipe() (undo func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGPIPE)
	return func() { signal.Stop(signals) }
}

// Interrupted returns a channel that is closed when Ctrl-C ends the context.
func Interrupted(ctx context.Context) <-chan struct{} { return Hurry(ctx, math.MaxInt64) }

// Hurry returns a channel that is closed when Ctrl-C ends the context, and a time after anything else did.
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
