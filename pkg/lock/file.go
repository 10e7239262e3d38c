package lock

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/fileset"
	"toolctl.dev/toolctl/internal/regular"
)

const (
	// version is the version of the file's format.
	version = 1
	// maxBytes is the maximum size of a lock file.
	maxBytes = 64 << 20
)

// document is the form of the file.
type document struct {
	Version int `json:"lock_version"`
	Servers []struct {
		Namespace       string `json:"namespace"`
		Name            string `json:"name"`
		ServerName      string `json:"server_name"`
		ServerVersion   string `json:"server_version"`
		ProtocolVersion string `json:"protocol_version"`
		Tools           []Tool `json:"tools"`
	} `json:"servers"`
}

// Read reads a lock file. A missing file is an error that errors.Is finds as
// [io/fs.ErrNotExist].
func Read(path string) (File, error) {
	f, err := regular.Open(path)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	switch {
	case err != nil:
		return File{}, err
	case len(data) > maxBytes:
		return File{}, fmt.Errorf("%s: the file is larger than %d bytes", path, maxBytes)
	}
	file, err := Parse(data)
	if err != nil {
		return File{}, fmt.Errorf("%s: %w", path, err)
	}
	return file, nil
}

// Parse reads the bytes of a lock file and compares each text with its hash.
func Parse(data []byte) (_ File, err error) {
	defer func() {
		if p := recover(); p != nil { // the YAML parser panics on some broken streams
			err = fmt.Errorf("not a lock file: %v", p)
		}
	}()
	var doc document
	if err := yaml.UnmarshalStrict(data, &doc); err != nil {
		if bytes.HasPrefix(data, []byte("<<<<<<< ")) || bytes.Contains(data, []byte("\n<<<<<<< ")) {
			return File{}, errors.New("the file has merge conflicts: take the file of one side as it is, then run 'toolctl lock'")
		}
		return File{}, fmt.Errorf("not a lock file: %w", err)
	}
	if bytes.Contains(data, []byte("\n---")) { // the parser reads the first document only
		return File{}, errors.New("not a lock file: more than one document")
	}
	if doc.Version != version {
		return File{}, fmt.Errorf("lock_version is %d, but this version of toolctl reads %d: write the file again with 'toolctl lock'", doc.Version, version)
	}
	var f File
	var violations []error
	for _, e := range doc.Servers {
		s := Server{Key: v1.Key{Kind: v1.KindMCPServer, Namespace: e.Namespace, Name: e.Name}, Name: e.ServerName, Version: e.ServerVersion, ProtocolVersion: e.ProtocolVersion}
		if f.Server(s.Key) != nil {
			violations = append(violations, fmt.Errorf("server %s/%s is listed twice", e.Namespace, e.Name))
			continue
		}
		for _, t := range e.Tools {
			if s.Tool(t.Name) != nil {
				violations = append(violations, fmt.Errorf("server %s/%s: tool %q is listed twice", e.Namespace, e.Name, t.Name))
				continue
			}
			for _, what := range t.edited() {
				violations = append(violations, fmt.Errorf("server %s/%s: tool %q: the hash of its %s does not match: the file was edited by hand; run 'toolctl lock --update %s'", e.Namespace, e.Name, t.Name, what, e.Name))
			}
			s.Tools = append(s.Tools, t)
		}
		f.Servers = append(f.Servers, s)
	}
	f.sort()
	return f, errors.Join(violations...)
}

// edited returns the parts whose text does not match the hash.
func (t *Tool) edited() []string {
	var out []string
	for _, p := range [...]struct{ what, have, want string }{
		{"name", t.Hashes.Name, hashText(t.Name)},
		{"title", t.Hashes.Title, hashText(t.Title)},
		{"description", t.Hashes.Description, hashText(t.Description)},
		{"annotations", t.Hashes.Annotations, hashOf(json.RawMessage(t.Annotations))},
	} {
		if p.what == "annotations" && t.Annotations == "" {
			continue // annotations without a canonical form have a hash and no text
		}
		if p.have != p.want {
			out = append(out, p.what)
		}
	}
	return out
}

// Write replaces a lock file atomically: readers see the old file or the new one.
func Write(path string, f File) error { return fileset.Replace(path, Marshal(f), 0o644) }

const header = `# Written by 'toolctl lock'. It holds what each MCP server said of its tools when
# a person last looked; with --locked, or spec.locked of the server, a tool whose
# definition differs is refused. Review a change of this file as you review code:
# models read these descriptions. Hashes are SHA-256 over canonical JSON (RFC 8785).
`

// Marshal returns a lock as YAML. The same lock gives the same bytes. It does not use sigs.k8s.io/yaml, which writes
// invisible characters unescaped: a reviewer must see them, so Marshal escapes them.
func Marshal(f File) []byte {
	f.Servers = clone(f.Servers)
	f.sort()
	var b bytes.Buffer
	b.WriteString(header)
	fmt.Fprintf(&b, "lock_version: %d\n", version)
	if len(f.Servers) == 0 {
		b.WriteString("servers: []\n")
		return b.Bytes()
	}
	b.WriteString("servers:\n")
	for _, s := range f.Servers {
		fmt.Fprintf(&b, "- namespace: %s\n  name: %s\n", quote(s.Key.Namespace), quote(s.Key.Name))
		optional(&b, "  ", "server_name", s.Name)
		optional(&b, "  ", "server_version", s.Version)
		optional(&b, "  ", "protocol_version", s.ProtocolVersion)
		if len(s.Tools) == 0 {
			b.WriteString("  tools: []\n")
			continue
		}
		b.WriteString("  tools:\n")
		for _, t := range s.Tools {
			writeTool(&b, &t)
		}
	}
	return b.Bytes()
}

func writeTool(b *bytes.Buffer, t *Tool) {
	fmt.Fprintf(b, "  - name: %s\n", quote(t.Name))
	optional(b, "    ", "title", t.Title)
	optional(b, "    ", "description", t.Description)
	optional(b, "    ", "annotations", t.Annotations)
	if len(t.Arguments) > 0 {
		args := make([]string, len(t.Arguments))
		for i, a := range t.Arguments {
			args[i] = quote(a)
		}
		fmt.Fprintf(b, "    arguments: [%s]\n", strings.Join(args, ", "))
	}
	b.WriteString("    hashes:\n")
	for _, p := range t.Hashes.parts() {
		if p.hash != "" {
			fmt.Fprintf(b, "      %s: %s\n", p.name, quote(p.hash))
		}
	}
}

func optional(b *bytes.Buffer, indent, key, text string) {
	if text == "" {
		return
	}
	if !isBlock(text) {
		fmt.Fprintf(b, "%s%s: %s\n", indent, key, quote(text))
		return
	}
	fmt.Fprintf(b, "%s%s: |-\n", indent, key)
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" {
			b.WriteString(indent + "  " + line)
		}
		b.WriteByte('\n')
	}
}
