package authoring

import (
	"errors"
	"io/fs"
	"strings"
	"sync/atomic"
)

// folder is the readable part of a folder in one call: it has no hidden files, which may hold secrets, and
// a maximum number of bytes.
type folder struct {
	fs.FS
	read atomic.Int64
}

var errTooMuch = errors.New("is beyond the 64 MiB that toolctl reads from the folder")

func (f *folder) Open(name string) (fs.File, error) {
	if hidden(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	file, err := f.FS.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.IsDir() && f.read.Add(info.Size()) > maxFolder {
		err = errTooMuch
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

func (f *folder) Stat(name string) (fs.FileInfo, error) {
	if hidden(name) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return fs.Stat(f.FS, name)
}

// hidden reports whether a file, or a folder above it, is hidden.
func hidden(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".") && part != "." && part != ".toolctlignore" {
			return true
		}
	}
	return false
}
