package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"toolctl.dev/toolctl/internal/mcpclients"
	"toolctl.dev/toolctl/internal/redact"
)

// writeConfig merges an entry into a client's file, after the difference was shown.
func (o *clientOptions) writeConfig(ctx context.Context, c mcpclients.Client, file string, entry any, s mcpclients.Server) error {
	const most = 10 << 20
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	mode, old := fs.FileMode(0o644), []byte(nil)
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return usageError{err}
	case !info.Mode().IsRegular():
		return usagef("%s is not a regular file", file)
	default:
		mode = info.Mode().Perm()
		if old, err = readFile(file, most); err != nil {
			return err
		}
		if len(old) > most {
			return usagef("%s is larger than %d bytes", file, most)
		}
	}
	next, err := c.Merge(old, o.name, entry, s)
	if err != nil {
		return usagef("%s: %w", file, err)
	}
	if bytes.Equal(old, next) {
		fmt.Fprintf(o.out, "%s unchanged\n", file)
		return nil
	}
	hidden := redact.New(nil)
	if c.Literal {
		for _, v := range s.Vars {
			mode = 0o600
			value, _ := o.env(v)
			hidden.Add(value)
		}
	}
	fmt.Fprintf(o.err, "%s:\n%s", file, hidden.Values(lineDiff(string(old), string(next))))
	if !o.yes {
		if !o.canAsk() {
			return usagef("--write asks before it changes %s: give --yes where nobody can answer", file)
		}
		yes, err := o.confirm(ctx, "Write it?")
		if err != nil {
			return err
		}
		if !yes {
			return statusError{exitFailed, "nothing was written"}
		}
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if info != nil {
		if err := replaceFile(file+".bak", old, info.Mode().Perm()&mode); err != nil {
			return err
		}
	}
	if err := replaceFile(file, next, mode); err != nil {
		return err
	}
	fmt.Fprintf(o.out, "%s written\n", file)
	return nil
}

// replaceFile writes a file in one step: who reads it sees the old one or the new one.
func replaceFile(file string, data []byte, mode fs.FileMode) error {
	tmp, err := os.CreateTemp(filepath.Dir(file), ".toolctl-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // nothing, once it is renamed
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Chmod(mode), tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), file)
}

// lineDiff shows what changed between two texts: the lines between those that both begin
// and end with.
func lineDiff(from, to string) string {
	a, b := strings.SplitAfter(from, "\n"), strings.SplitAfter(to, "\n")
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		start++
	}
	endA, endB := len(a), len(b)
	for endA > start && endB > start && a[endA-1] == b[endB-1] {
		endA, endB = endA-1, endB-1
	}
	var out strings.Builder
	show := func(sign string, lines []string) {
		for _, l := range lines {
			if l != "" {
				out.WriteString(sign + strings.TrimSuffix(l, "\n") + "\n")
			}
		}
	}
	show("- ", a[start:endA])
	show("+ ", b[start:endB])
	return out.String()
}
