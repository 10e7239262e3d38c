package main

import (
	"context"
	"io"

	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/internal/tty"
)

// readInput is like readFile, but reads stdin for "-".
func (a *app) readInput(ctx context.Context, file string, limit int) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(io.LimitReader(tty.Stdin(ctx, a.in), int64(limit)+1))
	}
	return readFile(file, limit)
}

// readFile is [regular.ReadUpTo]; an unreadable file is wrong usage.
func readFile(path string, limit int) ([]byte, error) {
	data, err := regular.ReadUpTo(path, limit)
	if err != nil {
		return nil, usageError{err}
	}
	return data, nil
}
