package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/regular"
)

// A folder is the folder that the manifests of one file may read, as seen from the manifest.
type folder struct {
	root fs.FS
	// shown is the folder as the user wrote it; dir is the manifest's folder within it.
	shown, dir string
	limit      int64
	asked      bool // a manifest named a file
}

var (
	errLeaves   = errors.New("leaves the folder that was given")
	errAbsolute = errors.New("is absolute: expected a path relative to the manifest")
)

// locate converts a path from a manifest to a path within the root.
func (f *folder) locate(dir, name string) (string, error) {
	f.asked = true
	name = filepath.ToSlash(name)
	if path.IsAbs(name) || filepath.IsAbs(name) {
		return "", errAbsolute
	}
	p := path.Join(dir, name)
	if filepath.IsLocal(filepath.FromSlash(p)) {
		return p, nil
	}
	wider := f.shown // the shown folder, with one parent step for each ".." that leaves the root
	for rest := p; rest == ".." || strings.HasPrefix(rest, "../"); rest = strings.TrimPrefix(rest[2:], "/") {
		wider = filepath.Join(wider, "..")
	}
	if f.shown == "" || wider == f.shown {
		return "", errLeaves
	}
	return "", fmt.Errorf("%w; pass the folder that contains both, as in -f %s", errLeaves, wider)
}

// read returns the content of a file that a manifest names, and the name of the file for messages.
func (f *folder) read(dir, name string) (data []byte, shown string, err error) {
	p, err := f.locate(dir, name)
	if err != nil {
		return nil, "", err
	}
	shown = filepath.Join(f.shown, filepath.FromSlash(p))
	data, err = readFile(f.root, p, f.limit)
	return data, shown, err
}

// readFile reads a regular file of at most limit bytes inside root. A symlink that leaves root is an error.
func readFile(root fs.FS, name string, limit int64) ([]byte, error) {
	data, err := regular.ReadFS(root, name, limit)
	if err != nil {
		return nil, fileReason(err)
	}
	return data, nil
}

// fileReason returns the reason of a file error, for a message that already names the file.
func fileReason(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fs.ErrNotExist
	}
	if escapes(err) {
		return errLeaves
	}
	return regular.Reason(err)
}

// escapes reports whether os.Root refused a path outside the root. The os package exports no such error.
func escapes(err error) bool { return err != nil && strings.Contains(err.Error(), "escapes") }

// readFiles reads the files that an object names into its Header.Files.
func (r *reader) readFiles(d *document, obj v1.Object) {
	in := &fileReader{reader: r, doc: d, head: obj.Head()}
	for _, p := range d.paths {
		in.inside(p.pointer, p.name)
	}
	switch o := obj.(type) {
	case *v1.Tool:
		in.data("/spec/mock_result_file", o.Spec.MockResultFile)
		in.text("/spec/mock_template_file", o.Spec.MockTemplateFile)
		in.parts("/spec/mock_parts", o.Spec.MockParts)
		in.resources("/spec/resources", o.Spec.Resources)
	case *v1.Prompt:
		in.resources("/spec/resources", o.Spec.Resources)
	case *v1.Scenario:
		for name, m := range o.Spec.Mocks {
			p := v1.Pointer("/spec/mocks", name)
			in.cassette(p+"/cassette", m.Cassette)
			in.parts(p+"/parts", m.Parts)
			for i := range m.Responses {
				in.parts(v1.Pointer(p, "responses", strconv.Itoa(i), "parts"), m.Responses[i].Parts)
			}
		}
	}
}

type fileReader struct {
	*reader
	doc  *document
	head *v1.Header
}

func (in *fileReader) fail(pointer, name, severity string, err error) {
	msg := fmt.Sprintf("file %q %s", clip.Bytes(name, maxShown), strings.TrimPrefix(err.Error(), "it "))
	if errors.Is(err, fs.ErrNotExist) {
		msg = fmt.Sprintf("file %q does not exist: expected it at %s", clip.Bytes(name, maxShown), filepath.Join(in.files.shown, in.files.dir, name))
	}
	in.doc.violation(in.doc.root, v1.Violation{Path: pointer, Source: in.doc.place(pointer), Severity: severity, Expected: "a file inside the folder", Got: strconv.Quote(clip.Bytes(name, maxShown)), Message: msg})
}

// open reads a file relative to the manifest, or by default relative to the given folder. PromptKit paths are
// relative to a configuration file, which may be in any parent folder, so open tries the parents too.
func (in *fileReader) open(pointer, name, severity string) ([]byte, bool) {
	if name == "" {
		return nil, false
	}
	if data, ok := in.head.Files[name]; ok {
		return data, true
	}
	dir := in.files.dir
	data, shown, err := in.files.read(dir, name)
	if in.doc.promptKit {
		severity = v1.SeverityWarning
		for errors.Is(err, fs.ErrNotExist) && dir != "." {
			dir = path.Dir(dir)
			data, shown, err = in.files.read(dir, name)
		}
	} else if errors.Is(err, fs.ErrNotExist) && dir != "." {
		if top, at, topErr := in.files.read(".", name); !errors.Is(topErr, fs.ErrNotExist) {
			data, shown, err = top, at, topErr
		}
	}
	if err != nil {
		in.fail(pointer, name, severity, err)
		return nil, false
	}
	in.refs = append(in.refs, shown)
	return data, true
}

func (in *fileReader) keep(name string, data []byte) {
	if in.head.Files == nil {
		in.head.Files = map[string][]byte{}
	}
	in.head.Files[name] = data
}

func (in *fileReader) text(pointer, name string) {
	if data, ok := in.open(pointer, name, ""); ok {
		in.keep(name, data)
	}
}

// cassette reads a recording. A missing file is valid, because the recording may be made later.
func (in *fileReader) cassette(pointer, name string) {
	if data, ok := in.open(pointer, name, v1.SeverityWarning); ok {
		in.keep(name, data)
	}
}

func (in *fileReader) parts(pointer string, parts []v1.Part) {
	for i, p := range parts {
		if p.Media != nil {
			in.text(v1.Pointer(pointer, strconv.Itoa(i), "media", "file_path"), p.Media.FilePath)
		}
	}
}

func (in *fileReader) resources(pointer string, all []v1.FileResource) {
	for i := range all[:min(len(all), v1.MaxFileResources)] {
		in.text(v1.Pointer(pointer, strconv.Itoa(i), "file"), all[i].File)
	}
}

// data reads a file with one JSON or YAML value and stores it as JSON.
func (in *fileReader) data(pointer, name string) {
	content, ok := in.open(pointer, name, "")
	if !ok {
		return
	}
	shown := in.refs[len(in.refs)-1]
	raw, violations := ToJSON(shown, content)
	if raw != nil {
		in.keep(name, raw)
	}
	for _, f := range violations {
		// Path is that of the field in the manifest; the place is that in the data file.
		f.Path = pointer
		in.doc.violation(in.doc.root, f)
	}
}

// ToJSON reads one JSON or YAML value by the rules of manifests and returns it as JSON. The extension of name selects
// the format (JSON for .json, else YAML). Violations contain the name, and their paths are relative to the value.
func ToJSON(name string, data []byte) (json.RawMessage, []v1.Violation) {
	raw, _, violations := ToJSONPlaced(name, data)
	return raw, violations
}

// ToJSONPlaced is [ToJSON] for a value whose members are checked later: place returns the source position of a JSON
// pointer, or of its nearest existing parent.
func ToJSONPlaced(name string, data []byte) (raw json.RawMessage, place func(pointer string) v1.Source, violations []v1.Violation) {
	value := &document{file: name, anchors: map[*yaml.Node]int{}}
	read := func(n *yaml.Node) bool {
		if value.root != nil {
			value.error(n, v1.Violation{Expected: "one value", Got: "more", Message: "more than one document: expected one value"})
			return false
		}
		value.root = n
		return true
	}
	if f := Documents(name, data, read); f != nil {
		value.violations = append(value.violations, *f)
	} else if value.root == nil {
		value.violations = append(value.violations, v1.Violation{Expected: "a JSON or YAML value", Got: "nothing", Message: "the file is empty: expected a JSON or YAML value", Source: v1.Source{File: name, Line: 1, Column: 1}})
	} else {
		value.normalize(value.root)
		raw = value.rawJSON(value.root)
	}
	violations = value.finish()
	if len(v1.Errors(violations)) > 0 {
		return nil, nil, violations
	}
	return raw, value.place, violations
}

// inside checks a path that is not read: a relative path must stay inside the folder.
func (in *fileReader) inside(pointer, name string) {
	if name == "" {
		return
	}
	p, err := in.files.locate(in.files.dir, name)
	if err == nil {
		if _, serr := fs.Stat(in.files.root, p); escapes(serr) {
			err = errLeaves
		}
	}
	if errors.Is(err, errLeaves) {
		in.fail(pointer, name, "", err)
	}
}
