package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/fileset"
	"toolctl.dev/toolctl/pkg/executors"
)

// openSaveDir makes the folder of --save and returns it, so that nothing is called that could
// not be saved; nil without --save. Names of files cannot lead out of it.
func (o *callOptions) openSaveDir() (*os.Root, error) {
	if o.save == "" {
		return nil, nil
	}
	if err := os.MkdirAll(o.save, 0o755); err != nil {
		return nil, usagef("--save: %w", err)
	}
	dir, err := os.OpenRoot(o.save)
	if err != nil {
		return nil, usagef("--save: %w", err)
	}
	return dir, nil
}

// saveParts writes the binary parts of a result to files, and says on stderr which ones.
func (o *callOptions) saveParts(dir *os.Root, res v1.Result) error {
	saved := 0
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
			return fmt.Errorf("--save: a part of type %s is not base64: %w", p.Type, err)
		}
		if fileset.CheckName(name) != nil || path.Base(name) != name {
			name = res.Tool + executors.Extension(mediaType)
		}
		written, err := writeNew(dir, name, raw)
		if err != nil {
			return fmt.Errorf("--save: %w", err)
		}
		saved++
		fmt.Fprintf(o.err, "saved %s (%s, %s)\n", clip.Line(filepath.Join(o.save, written)), clip.Line(mediaType), count(len(raw), "byte"))
	}
	if saved == 0 {
		fmt.Fprintln(o.err, "nothing was saved: the result has no binary parts")
	}
	return nil
}

// writeNew writes a file that is not there yet: name.png, else name-2.png and so on.
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
