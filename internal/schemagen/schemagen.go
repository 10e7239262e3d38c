// Package schemagen makes the JSON Schemas of the manifest kinds, their reference pages, and
// what the CustomResourceDefinitions of Kubernetes are made of, from the Go source of api/v1.
//
// # What it reads
//
// The fields of a manifest are the exported fields of the structs of api/v1 that
// a kind leads to, under their json names. The rules come from the `check` tag.
// The rest comes from the doc comment of the field, which is
//
//	GoName says what the field means, in sentences. Required. Default: X. Example: Y.
//
// where each of the three markers may be absent, and nothing follows them. The
// example is one YAML value. A default that is a value of the field's type is
// one too; a default of several words on a field of text is prose, such as "the
// tool's timeout_ms", and so is any other default that does not fit the type.
// The doc comment of a type may hold one indented YAML block, its example.
// A json.RawMessage whose comment speaks of a "JSON Schema" takes a JSON Schema,
// every other one takes any JSON value.
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
