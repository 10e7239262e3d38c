package manifest

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/fileset"
)

// Export returns files from which the objects can be read again: their manifests and the files that the manifests
// name, by slash-separated path relative to one folder. An object keeps the path of its source file if that path is
// relative and safe to write; other objects are at namespace/kind-name.yaml. An error names an object whose files
// would leave the folder or conflict with those of another object.
func Export(objects []v1.Object) (map[string][]byte, error) {
	sorted := slices.Clone(objects)
	slices.SortStableFunc(sorted, func(a, b v1.Object) int {
		x, y := a.Head(), b.Head()
		return cmp.Or(strings.Compare(x.Source.File, y.Source.File), cmp.Compare(x.Source.Line, y.Source.Line), strings.Compare(x.Key().String(), y.Key().String()))
	})
	files := map[string][]byte{}
	for _, o := range sorted {
		text, err := MarshalYAML(o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.Head().Key(), err)
		}
		at := exportPath(o.Head())
		if files[at] != nil {
			text = slices.Concat(files[at], []byte("---\n"), text)
		}
		files[at] = text
	}
	for _, o := range sorted {
		for name, data := range o.Head().Files {
			at := path.Join(path.Dir(exportPath(o.Head())), filepath.ToSlash(name))
			if !filepath.IsLocal(filepath.FromSlash(at)) {
				return nil, fmt.Errorf("%s names the file %s, which leaves the folder", o.Head().Key(), name)
			}
			if have, ok := files[at]; ok && !bytes.Equal(have, data) {
				return nil, fmt.Errorf("%s names the file %s, which another object has with other content", o.Head().Key(), name)
			}
			files[at] = data
		}
	}
	return files, nil
}

func exportPath(h *v1.Header) string {
	file := filepath.ToSlash(h.Source.File)
	if file == "-" || !filepath.IsLocal(h.Source.File) || fileset.CheckName(path.Clean(file)) != nil {
		return path.Join(h.Namespace(), strings.ToLower(h.Kind)+"-"+h.Metadata.Name+".yaml")
	}
	if ext := strings.ToLower(path.Ext(file)); ext != ".yaml" && ext != ".yml" {
		file += ".yaml"
	}
	return path.Clean(file)
}
