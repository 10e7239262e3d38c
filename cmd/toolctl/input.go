package main

import (
	"context"
	"io"

	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/internal/tty"
)

// readInput is readFile, and stdin for "-".
func (a *app) readInput(ctx context.Context, file string, limit int) ([]byte, error) {
	if file == "-" {
		return readUpTo(tty.Stdin(ctx, a.in), limit)
	}
	return readFile(file, limit)
}

// readFile reads a file whatever its size is said to be: that of a device is 0. One that
// has more than limit bytes is cut after the first too many, by which the caller knows.
// One that cannot be opened is wrong usage.
func readFile(path string, limit int) ([]byte, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, usageError{err}
	}
	defer f.Close()
	return readUpTo(f, limit)
}

func readUpTo(in io.Reader, limit int) ([]byte, error) {
	return io.ReadAll(io.LimitReader(in, int64(limit)+1))
}
