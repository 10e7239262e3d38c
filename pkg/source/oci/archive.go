package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"
)

// The bounds of a package.
const (
	maxFiles     = 10_000
	maxFileBytes = 10 << 20
	maxBytes     = 128 << 20 // of all files
	maxPath      = 1024
	maxArchive   = 64 << 20 // as it is transferred
)

// pack returns an archive of files, by slash-separated paths: the same for the same files.
func pack(files map[string][]byte) ([]byte, error) {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	archive := tar.NewWriter(zip)
	total := 0
	for _, name := range slices.Sorted(maps.Keys(files)) {
		data := files[name]
		if total += len(data); !legal(name) || len(data) > maxFileBytes || total > maxBytes || len(files) > maxFiles {
			return nil, fmt.Errorf("%s: a package has up to %d files of up to %d bytes, %d bytes in all", name, maxFiles, maxFileBytes, maxBytes)
		}
		head := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(data)), Mode: 0o644, ModTime: time.Unix(0, 0)}
		if err := archive.WriteHeader(head); err != nil {
			return nil, err
		}
		if _, err := archive.Write(data); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(archive.Close(), zip.Close()); err != nil {
		return nil, err
	}
	if out.Len() > maxArchive {
		return nil, fmt.Errorf("the archive has %d bytes: expected up to %d", out.Len(), maxArchive)
	}
	return out.Bytes(), nil
}

func legal(name string) bool {
	return fs.ValidPath(name) && name != "." && len(name) <= maxPath && !strings.ContainsAny(name, "\\:\x00\n")
}

// unpack returns the files of an archive. Whatever is not a regular file within it, stands in it
// twice or is beyond a bound is an error.
func unpack(data []byte) (map[string][]byte, error) {
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("the archive: %w", err)
	}
	files := map[string][]byte{}
	const headers = maxFiles * 4096 // around the files
	archive := tar.NewReader(io.LimitReader(zip, maxBytes+headers))
	total := int64(0)
	for {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, fmt.Errorf("the archive: %w", err)
		}
		total += head.Size
		switch _, twice := files[head.Name]; {
		case head.Typeflag != tar.TypeReg:
			return nil, fmt.Errorf("the archive: %q is not a regular file", head.Name)
		case !legal(head.Name):
			return nil, fmt.Errorf("the archive: %q is not a path within the package", head.Name)
		case twice:
			return nil, fmt.Errorf("the archive: %q is there twice", head.Name)
		case head.Size > maxFileBytes || total > maxBytes || len(files) == maxFiles:
			return nil, fmt.Errorf("the archive has more than %d files of %d bytes, %d bytes in all", maxFiles, maxFileBytes, maxBytes)
		}
		text := make([]byte, head.Size)
		if _, err := io.ReadFull(archive, text); err != nil {
			return nil, fmt.Errorf("the archive: %s: %w", head.Name, err)
		}
		files[head.Name] = text
	}
}
