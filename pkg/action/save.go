package action

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/fileset"
	"toolctl.dev/toolctl/pkg/executors"
)

// saveDir is a folder for the binary parts of results. Their names cannot lead out of the folder.
type saveDir struct{ root *os.Root }

// openSaveDir creates the folder before the call, so that toolctl makes no call whose result it cannot save.
func openSaveDir(path string) (*saveDir, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, usagef("--save: %w", err)
	}
	dir, err := os.OpenRoot(path)
	if err != nil {
		return nil, usagef("--save: %w", err)
	}
	return &saveDir{dir}, nil
}

func (d *saveDir) Close() error { return d.root.Close() }

// SavedPart is a file that was written.
type SavedPart struct {
	Name, MediaType string
	Bytes           int
}

// save writes the binary parts of a result to new files.
func (d *saveDir) save(res v1.Result) (saved []SavedPart, err error) {
	for _, p := range res.Parts {
		data, mediaType, name := p.Data, p.MIMEType, p.Name
		if r := p.Resource; r != nil && r.Blob != "" {
			data, mediaType, name = r.Blob, r.MIMEType, path.Base(r.URI)
		}
		if data == "" {
			continue
		}
		raw, err := base64.StdEncoding.DecodeString(data)
		if err != nil {
			return saved, fmt.Errorf("--save: a part of type %s is not base64: %w", p.Type, err)
		}
		if fileset.CheckName(name) != nil || path.Base(name) != name {
			name = res.Tool + executors.Extension(mediaType)
		}
		written, err := writeNew(d.root, name, raw)
		if err != nil {
			return saved, fmt.Errorf("--save: %w", err)
		}
		saved = append(saved, SavedPart{written, mediaType, len(raw)})
	}
	return saved, nil
}

// writeNew writes a new file: name.png, or name-2.png if that exists, and so on.
func writeNew(dir *os.Root, name string, data []byte) (string, error) {
	ext := path.Ext(name)
	for n, try := 2, name; ; n, try = n+1, fmt.Sprintf("%s-%d%s", name[:len(name)-len(ext)], n, ext) {
		f, err := dir.OpenFile(try, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.Write(data)
		return try, errors.Join(err, f.Close())
	}
}
