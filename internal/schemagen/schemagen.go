// Package schemagen generates the JSON Schemas of the manifest kinds, their reference pages, and
// the input for the Kubernetes CustomResourceDefinitions, from the Go source of api/v1.
//
// # What it reads
//
// The fields of a manifest are the exported fields of the structs of api/v1 that a kind uses, under
// their JSON names. The rules come from the `check` tag. The rest comes from the doc comment of the
// field, which has the form
//
//	GoName says what the field means, in sentences. Required. Default: X. Example: Y.
//
// where each of the three markers may be absent, and nothing follows them. The example is one YAML
// value. A default is also a YAML value if it fits the type of the field; otherwise it is prose. A
// default of several words for a text field is always prose, such as "the tool's timeout_ms". The
// doc comment of a type may contain one indented YAML block as its example. A json.RawMessage whose
// comment mentions a "JSON Schema" accepts a JSON Schema; any other one accepts any JSON value.
//
// A comment that breaks these rules stops the generator, with the place of each.
package schemagen

import (
	"errors"
	"os"
	"path/filepath"
)

// Write writes every generated file of the repository with the top folder root.
func Write(root string) error {
	files, err := generate(root)
	if err != nil {
		return err
	}
	for _, f := range files {
		path := filepath.Join(root, filepath.FromSlash(f.path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Inline returns the schema of a kind with every type in place and without references.
func Inline(root, kind string) (*Schema, error) {
	src, err := read(root)
	if err != nil {
		return nil, err
	}
	b := &builder{src: src, done: map[string]bool{}, inline: true}
	return b.kind(kind)
}

// file is a generated file; its path is relative to the top folder, with slashes.
type file struct {
	path string
	data []byte
}

// generate returns the generated files without writing them.
func generate(root string) ([]file, error) {
	src, err := read(root)
	if err != nil {
		return nil, err
	}
	schemas, err := schemaFiles(src)
	if err != nil {
		return nil, err
	}
	return append(schemas, referenceFiles(src)...), nil
}

// read reads the source of a repository. Its comments must follow the rules of the package comment.
func read(root string) (*source, error) {
	src, err := readSource(filepath.Join(root, "api", "v1"))
	if err != nil {
		return nil, err
	}
	return src, errors.Join(src.violations()...)
}
