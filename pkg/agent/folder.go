package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/fileset"
	"toolctl.dev/toolctl/internal/perm"
	"toolctl.dev/toolctl/internal/regular"
)

// Bounds of a Folder.
const (
	maxStates     = 1000
	maxStateBytes = 64 << 20
)

// Folder stores pending runs as files ID.json in a folder, readable by their owner only. Save creates the folder. A
// folder or file that others can write is refused, because its calls are made in the name of the owner. A folder holds
// at most 1,000 pending runs. Take renames the file to ID.running; if that process dies, rename the file back to
// resume the run.
type Folder string

var _ States = Folder("")

func (f Folder) path(id, suffix string) (string, error) {
	ok := id != "" && len(id) <= 64 && strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") == ""
	if !ok {
		return "", &v1.NotFoundError{Kind: "Run", Name: clip.Bytes(id, 64)}
	}
	return filepath.Join(string(f), id+suffix), nil
}

// Save implements [States].
func (f Folder) Save(_ context.Context, id string, state []byte) error {
	path, err := f.path(id, ".json")
	if err != nil {
		return err
	}
	if len(state) > maxStateBytes {
		return fmt.Errorf("the state has %d bytes: at most %d can be saved", len(state), maxStateBytes)
	}
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return err
	}
	if err := errors.Join(perm.Folder(string(f)), perm.File(path)); err != nil {
		return err
	}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		if waiting, err := f.List(); err != nil || len(waiting) >= maxStates {
			return errors.Join(err, fmt.Errorf("%d runs are already suspended in %s: resume some, or delete their files", len(waiting), string(f)))
		}
	}
	if err := fileset.Replace(path, state, 0o600); err != nil {
		return err
	}
	running, _ := f.path(id, ".running") // path accepted the id above
	return ignoreMissing(os.Remove(running))
}

// Take reads a state and sets it aside.
func (f Folder) Take(_ context.Context, id string) ([]byte, error) {
	path, err := f.path(id, ".json")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(perm.Folder(string(f)), perm.File(path)); err != nil {
		return nil, fmt.Errorf("run %s: %w", id, err)
	}
	running, _ := f.path(id, ".running") // path accepted the id above
	if err := os.Rename(path, running); errors.Is(err, fs.ErrNotExist) {
		return nil, f.missing(id, running, path)
	} else if err != nil {
		return nil, err
	}
	info, err := os.Stat(running)
	if err == nil && info.Size() > maxStateBytes {
		err = fmt.Errorf("run %s: the saved state has %d bytes: at most %d can be read", id, info.Size(), maxStateBytes)
	}
	var data []byte
	if err == nil {
		data, err = regular.ReadFile(running)
	}
	if err != nil {
		return nil, errors.Join(err, os.Rename(running, path))
	}
	return data, nil
}

// missing returns the error for a run that cannot be found.
func (f Folder) missing(id, running, path string) error {
	if _, err := os.Lstat(running); err == nil {
		return fmt.Errorf("run %s is being resumed already; if no process resumes it, rename %s to %s", id, running, filepath.Base(path))
	}
	e := &v1.NotFoundError{Kind: "Run", Name: id}
	waiting, err := f.List()
	if err != nil {
		return errors.Join(e, err)
	}
	if near := v1.Nearest(id, waiting); near != "" {
		e.Candidates = []string{near}
	}
	return e
}

// Drop deletes a state that was taken.
func (f Folder) Drop(_ context.Context, id string) error {
	running, err := f.path(id, ".running")
	if err != nil {
		return err
	}
	return ignoreMissing(os.Remove(running))
}

// List returns the sorted ids of the pending runs. The list is empty if the folder does not exist.
func (f Folder) List() ([]string, error) {
	entries, err := os.ReadDir(string(f))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var ids []string
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), ".json"); ok {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
