package fileset

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// Write writes files by name into a folder that is new or empty. If there is an error, it writes no
// files. A new folder appears in one step, with all of its files.
func Write(dir string, files map[string][]byte) error {
	names := slices.Sorted(maps.Keys(files))
	if err := Check(names); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	fresh := errors.Is(err, fs.ErrNotExist)
	at := dir // an existing folder may be a mount or the working directory, so it is not replaced
	switch {
	case fresh:
		at = filepath.Dir(filepath.Clean(dir))
		if err := os.MkdirAll(at, 0o777); err != nil {
			return err
		}
	case err != nil:
		return err
	case len(entries) > 0:
		return fmt.Errorf("%s is not empty", dir)
	}
	stage, err := os.MkdirTemp(at, ".toolctl-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	whole := filepath.Join(stage, "whole")
	if err := write(whole, names, files); err != nil {
		return err
	}
	if fresh {
		return os.Rename(whole, dir)
	}
	return move(whole, dir)
}

func write(dir string, names []string, files map[string][]byte) error {
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range names {
		if err := root.MkdirAll(filepath.FromSlash(path.Dir(name)), 0o777); err != nil {
			return err
		}
		if err := root.WriteFile(filepath.FromSlash(name), files[name], 0o666); err != nil {
			return err
		}
	}
	return nil
}

// move moves the content of one folder to another. If there is an error, it moves nothing.
func move(from, to string) (err error) {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	var moved []string
	defer func() {
		for _, name := range moved {
			if err != nil {
				_ = os.RemoveAll(name)
			}
		}
	}()
	for _, e := range entries {
		name := filepath.Join(to, e.Name())
		if _, err := os.Lstat(name); err == nil {
			return fmt.Errorf("%s: %w", name, fs.ErrExist)
		}
		if err := os.Rename(filepath.Join(from, e.Name()), name); err != nil {
			return err
		}
		moved = append(moved, name)
	}
	return nil
}
