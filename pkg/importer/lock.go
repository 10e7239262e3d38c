package importer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/pkg/manifest"
)

// LockFile is the name of the file that holds the manifests as last generated. It is JSON, to be
// reviewed and committed beside the manifests; because of its extension it is not loaded as a
// manifest.
const LockFile = "openapi-import.lock"

// lock is the content of LockFile.
type lock struct {
	Comment string          `json:"comment"`
	Source  string          `json:"source"`
	Title   string          `json:"title"`
	Version string          `json:"version,omitempty"`
	Options json.RawMessage `json:"options,omitempty"`
	Tools   []lockEntry     `json:"tools"`
}

// LastOptions reads the options of the last import into a folder. It changes nothing for a new folder.
func LastOptions(dir string, into any) error {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // nothing is written
	l, err := readLock(root)
	if err != nil || l.Options == nil {
		return err
	}
	if err := strict(l.Options, into); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	return nil
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

func readLock(root *os.Root) (_ *lock, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", root.Name(), err)
		}
	}()
	data, err := readFile(root, LockFile, maxLock)
	if errors.Is(err, fs.ErrNotExist) {
		return &lock{}, nil
	}
	if err != nil {
		return nil, err
	}
	var l lock
	if err := strict(data, &l); err != nil {
		return nil, err
	}
	for i, e := range l.Tools {
		base, ok := strings.CutSuffix(e.File, ".yaml")
		if !ok || !v1.IsName(base) {
			return nil, fmt.Errorf("%s: tools[%d].file: %q is not a file of an import", LockFile, i, e.File)
		}
		if _, err := tree("", e.Manifest); err != nil {
			return nil, fmt.Errorf("%s: tools[%d].manifest: %w", LockFile, i, err)
		}
	}
	return &l, nil
}

// strict reads JSON of a lock file and refuses unknown fields.
func strict(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("%s: %w: restore it from version control, or remove it to import into new files", LockFile, err)
	}
	return nil
}

// write writes the lock file, unless it would not change.
func (l *lock) write(root *os.Root, options any) error {
	l.Comment = lockComment
	slices.SortFunc(l.Tools, func(a, b lockEntry) int { return cmp.Compare(a.File, b.File) })
	if raw, err := json.Marshal(options); err != nil {
		return err
	} else if string(raw) != "{}" {
		l.Options = raw
	}
	text, err := manifest.MarshalJSON(l)
	if err != nil {
		return err
	}
	if before, err := readFile(root, LockFile, maxLock); err == nil && bytes.Equal(before, text) {
		return nil
	}
	return writeFile(root, LockFile, text)
}

// tree reads the text of a manifest by the rules of manifests.
func tree(name string, text []byte) (v any, err error) {
	raw, violations := manifest.ToJSON(name, text)
	if errs := v1.Errors(violations); len(errs) > 0 {
		return nil, errors.New(errs[0].String())
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return v, dec.Decode(&v)
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
