package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/openapi/internal/doc"
)

// LockFile is the name of the file that holds the manifests as last generated. It is JSON, to be
// reviewed and committed beside the manifests; because of its extension it is not loaded as a
// manifest.
const LockFile = "openapi-import.lock"

// lock is the content of LockFile.
type lock struct {
	Comment string      `json:"comment"`
	Source  string      `json:"source"`
	Title   string      `json:"title"`
	Version string      `json:"version,omitempty"`
	Options Options     `json:"options,omitzero"`
	Tools   []lockEntry `json:"tools"`
}

// LastOptions returns the options of the last import into a folder, or the zero Options for a new
// folder. Options that are not saved are zero.
func LastOptions(dir string) (Options, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return Options{}, nil
	}
	if err != nil {
		return Options{}, err
	}
	defer func() { _ = root.Close() }() // nothing is written
	l, err := readLock(root)
	if err != nil {
		return Options{}, fmt.Errorf("%s: %w", dir, err)
	}
	return l.Options, nil
}

const lockComment = "Written by toolctl import openapi: the manifests as they were last generated. The next import compares with them to keep changes made by hand. Remove an entry to import its operation again."

// lockEntry is the last import of one operation.
type lockEntry struct {
	Operation string `json:"operation"`
	File      string `json:"file"`
	// Written is the SHA-256 of the file as the import wrote it.
	Written string `json:"written"`
	// Manifest is the generated manifest, before any merge.
	Manifest json.RawMessage `json:"manifest"`
}

// maxLock is the maximum size of a lock file, in bytes.
const maxLock = 1 << 30

func readLock(root *os.Root) (*lock, error) {
	data, err := readFile(root, LockFile, maxLock)
	if errors.Is(err, fs.ErrNotExist) {
		return &lock{Comment: lockComment}, nil
	}
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var l lock
	if err := dec.Decode(&l); err != nil {
		return nil, fmt.Errorf("%s: %w: restore it from version control, or remove it to import into new files", LockFile, err)
	}
	for i, e := range l.Tools {
		base, ok := strings.CutSuffix(e.File, ".yaml")
		if !ok || !v1.IsName(base) {
			return nil, fmt.Errorf("%s: tools[%d].file: %q is not a file of an import", LockFile, i, e.File)
		}
		if _, err := doc.Parse(e.Manifest); err != nil {
			return nil, fmt.Errorf("%s: tools[%d].manifest: %w", LockFile, i, err)
		}
	}
	return &l, nil
}

func (l *lock) encode() ([]byte, error) {
	l.Comment = lockComment
	return manifest.MarshalJSON(l)
}

func readFile(root *os.Root, name string, limit int64) ([]byte, error) {
	data, err := regular.ReadFS(root.FS(), name, limit)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s: %w", name, regular.Reason(err))
	}
	return data, err
}

// writeFile replaces a file atomically, so that no partly written file remains.
func writeFile(root *os.Root, name string, data []byte) error {
	temp := "." + name + ".tmp"
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = root.Rename(temp, name)
	}
	if err != nil {
		err = errors.Join(err, root.Remove(temp))
	}
	return err
}
