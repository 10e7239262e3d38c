package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/fileset"
)

// Limits of a package.
const (
	maxFiles     = 10_000
	maxFileBytes = 10 << 20
	maxBytes     = 128 << 20 // of all files
	maxArchive   = 64 << 20  // compressed
)

// pack returns an archive of files by slash-separated paths. The same files give the same archive.
func pack(files map[string][]byte) ([]byte, error) {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	archive := tar.NewWriter(zip)
	total := 0
	names := slices.Sorted(maps.Keys(files))
	if err := fileset.Check(names); err != nil {
		return nil, fmt.Errorf("a package cannot contain these files:\n%w", err)
	}
	for _, name := range names {
		data := files[name]
		if total += len(data); len(data) > maxFileBytes || total > maxBytes || len(files) > maxFiles {
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

// unpack returns the files of an archive. It returns an error that names all entries that are not regular files, have a
// name that [fileset.Check] refuses, or exceed a limit.
func unpack(data []byte) (map[string][]byte, error) {
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("the archive: %w", err)
	}
	files := map[string][]byte{}
	var names []string
	var others []error
	const headers = maxFiles * 4096 // in addition to the files
	archive := tar.NewReader(io.LimitReader(zip, maxBytes+headers))
	total := int64(0)
	for {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("the archive: %w", err)
		}
		if total += head.Size; head.Size > maxFileBytes || total > maxBytes || len(names)+len(others) == maxFiles {
			return nil, fmt.Errorf("the archive has more than %d files of %d bytes, %d bytes in all", maxFiles, maxFileBytes, maxBytes)
		}
		if head.Typeflag != tar.TypeReg {
			others = append(others, fmt.Errorf("%q is not a regular file", clip.Bytes(head.Name, 200)))
			continue
		}
		text := make([]byte, head.Size)
		if _, err := io.ReadFull(archive, text); err != nil {
			return nil, fmt.Errorf("the archive: %s: %w", clip.Line(clip.Bytes(head.Name, 200)), err)
		}
		names, files[head.Name] = append(names, head.Name), text
	}
	const shown = 20
	if more := len(others) - shown; more > 0 {
		others = append(others[:shown], fmt.Errorf("and %d more that are not regular files", more))
	}
	if err := errors.Join(append(others, fileset.Check(names))...); err != nil {
		return nil, fmt.Errorf("the package has files that must not be written:\n%w", err)
	}
	return files, nil
}
