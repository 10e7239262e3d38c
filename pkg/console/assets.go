package console

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	_ "embed"
	"errors"
	"html/template"
	"io"
	"path"
	"strings"
)

// packed holds the folders templates and static, and openapi.json, compressed to a quarter of their size.
// TestAssets creates it, and fails if it is out of date.
//
//go:embed assets.tar.gz
var packed []byte

// unpack returns files by their paths.
func unpack(archive []byte) (map[string][]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if files[h.Name], err = io.ReadAll(t); err != nil {
			return nil, err
		}
	}
}

// parse reads the templates of the pages.
func parse(files map[string][]byte) (*template.Template, error) {
	all := template.New("").Funcs(functions)
	for name, text := range files {
		if !strings.HasPrefix(name, "templates/") {
			continue
		}
		if _, err := all.New(path.Base(name)).Parse(string(text)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// mustAssets returns the embedded files and the parsed templates.
func mustAssets() (map[string][]byte, *template.Template) {
	files, err := unpack(packed)
	if err != nil {
		panic("the files of the console: " + err.Error())
	}
	return files, template.Must(parse(files))
}
