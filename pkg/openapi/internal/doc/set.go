package doc

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/pkg/schema"
)

// MaxFiles is the maximum number of files that one document may refer to.
const MaxFiles = 200

// A File is one parsed file of a [Set].
type File struct {
	// Name is the path inside the set's folder; "" for the document itself.
	Name string
	Root any

	orders  orders
	ids     map[string]string // $id as written to pointer
	roots   map[string]bool   // pointers of schemas with an $id
	anchors map[string]string // resource pointer + "#" + name to pointer
}

// A Location is a place in a file.
type Location struct {
	File    *File
	Pointer string // RFC 6901
}

// Child returns the location below l.
func (l Location) Child(tokens ...string) Location {
	return Location{l.File, v1.Pointer(l.Pointer, tokens...)}
}

// String returns the location in the form of a reference: file#pointer.
func (l Location) String() string { return l.File.Name + "#" + l.Pointer }

// A Set is a document together with the files that it refers to.
type Set struct {
	// Main is the document itself.
	Main *File

	folder fs.FS // nil: references to other files are refused
	name   string
	files  map[string]*File
	left   int64
}

// NewSet returns the set of a document. References to other files are read from
// folder, in which the document has the given path; a nil folder refuses them.
func NewSet(data []byte, folder fs.FS, name string) (*Set, error) {
	written := orders{}
	root, err := parse(data, written)
	if err != nil {
		return nil, err
	}
	s := &Set{folder: folder, name: path.Clean(name), files: map[string]*File{}, left: MaxBytes - int64(len(data))}
	s.Main = newFile("", root, written)
	s.files[s.name] = s.Main
	return s, nil
}

func newFile(name string, root any, written orders) *File {
	f := &File{Name: name, Root: root, orders: written, ids: map[string]string{}, roots: map[string]bool{}, anchors: map[string]string{}}
	f.index(root, "", "")
	return f
}

// Names returns the member names of an object in the file, in their written order.
func (f *File) Names(object map[string]any) []string { return f.orders.names(object) }

// index records $id and $anchor (JSON Schema 2020-12 core, sections 8.2.1 and 8.2.2).
func (f *File) index(v any, pointer, resource string) {
	switch v := v.(type) {
	case map[string]any:
		if id, ok := v["$id"].(string); ok {
			f.ids[strings.TrimSuffix(id, "#")] = pointer
			f.roots[pointer] = true
			resource = pointer
		}
		for _, k := range []string{"$anchor", "$dynamicAnchor"} {
			if a, ok := v[k].(string); ok {
				f.anchors[resource+"#"+a] = pointer
			}
		}
		for k, e := range v {
			switch e.(type) {
			case map[string]any, []any:
				f.index(e, v1.Pointer(pointer, k), resource)
			}
		}
	case []any:
		for i, e := range v {
			switch e.(type) {
			case map[string]any, []any:
				f.index(e, v1.Pointer(pointer, strconv.Itoa(i)), resource)
			}
		}
	}
}

// resource returns the pointer of the schema resource that contains pointer.
func (f *File) resource(pointer string) string {
	if len(f.ids) == 0 {
		return ""
	}
	for p := pointer; p != ""; p = p[:strings.LastIndexByte(p, '/')] {
		if f.roots[p] {
			return p
		}
	}
	return ""
}

// Resolve follows one reference found at from. It does not follow a reference found at the target.
func (s *Set) Resolve(from Location, ref string) (Location, any, error) {
	address, fragment, _ := strings.Cut(ref, "#")
	at := Location{File: from.File, Pointer: from.File.resource(from.Pointer)}
	if address != "" {
		if p, ok := from.File.ids[address]; ok {
			at.Pointer = p
		} else {
			file, err := s.open(from.File, address)
			if err != nil {
				return Location{}, nil, fmt.Errorf("reference %q: %w", clip.Bytes(ref, 120), err)
			}
			at = Location{File: file}
		}
	}
	fragment, err := url.PathUnescape(fragment)
	if err != nil {
		return Location{}, nil, fmt.Errorf("reference %q: %w", clip.Bytes(ref, 120), err)
	}
	switch {
	case fragment == "":
	case fragment[0] == '/':
		at.Pointer += fragment
	default:
		p, ok := at.File.anchors[at.Pointer+"#"+fragment]
		if !ok {
			return Location{}, nil, fmt.Errorf("reference %q: no schema has the anchor %q", clip.Bytes(ref, 120), clip.Bytes(fragment, 120))
		}
		at.Pointer = p
	}
	v, err := at.File.lookup(at.Pointer)
	if err != nil {
		return Location{}, nil, fmt.Errorf("reference %q: %w", clip.Bytes(ref, 120), err)
	}
	return at, v, nil
}

func (f *File) lookup(pointer string) (any, error) {
	v, missing, ok := schema.At(f.Root, pointer)
	if !ok {
		return nil, fmt.Errorf("nothing at %q: there is no %q", clip.Bytes(pointer, 120), clip.Bytes(missing, 120))
	}
	return v, nil
}

func (s *Set) open(from *File, address string) (*File, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	switch {
	case u.Scheme != "" || u.Host != "":
		return nil, errors.New("it leads to another address, and nothing is fetched: bundle the document into one file first")
	case s.folder == nil:
		return nil, errors.New("it leads to another file, which cannot be read from here: bundle the document into one file, or save it with its files and import the file")
	case strings.HasPrefix(u.Path, "/"):
		return nil, errors.New("an absolute path: only files in the folder of the document are read")
	}
	base := from.Name
	if base == "" {
		base = s.name
	}
	name := path.Join(path.Dir(base), u.Path)
	if f, ok := s.files[name]; ok {
		return f, nil
	}
	if !fs.ValidPath(name) {
		return nil, errors.New("it leaves the folder of the document: only files in that folder are read")
	}
	if len(s.files) > MaxFiles {
		return nil, fmt.Errorf("the document refers to more than %d files", MaxFiles)
	}
	data, err := s.read(name)
	if err != nil {
		return nil, err
	}
	written := orders{}
	root, err := parse(data, written)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	f := newFile(name, root, written)
	s.files[name] = f
	return f, nil
}

func (s *Set) read(name string) ([]byte, error) {
	data, err := regular.ReadFS(s.folder, name, s.left)
	if errors.Is(err, regular.ErrTooLarge) {
		return nil, fmt.Errorf("the document and its files are larger than %d MiB", MaxBytes>>20)
	}
	s.left -= int64(len(data))
	return data, err
}
