package plan

import (
	"path/filepath"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/store"
)

// SetName returns the name of a set from the paths of its manifests: absolute, sorted and without duplicates,
// one per line; "-" stays as it is.
func SetName(paths []string) (string, error) {
	var abs []string
	for _, f := range paths {
		if f != "-" {
			p, err := filepath.Abs(f)
			if err != nil {
				return "", err
			}
			f = p
		}
		abs = append(abs, f)
	}
	slices.Sort(abs)
	return strings.Join(slices.Compact(abs), "\n"), nil
}

// Skipped returns a function that reports whether a skipped document may contain an applied object. Such an object
// must not be pruned. It may be an object with the same name, or any object of a file with an unidentified part, or of
// a folder that was not read. An object without a namespace may be in the given namespace. Skipped returns nil if
// nothing was skipped.
func Skipped(skipped []manifest.Skipped, namespace string) func(store.Record) bool {
	if len(skipped) == 0 {
		return nil
	}
	keys, files := map[v1.Key]bool{}, map[string]bool{}
	for _, s := range skipped {
		if s.Key.Namespace == v1.DefaultNamespace && namespace != "" {
			keys[v1.Key{Kind: s.Key.Kind, Namespace: namespace, Name: s.Key.Name}] = true
		}
		if keys[s.Key] = true; s.Key.Name == "" {
			files[s.File] = true
		}
	}
	return func(r store.Record) bool {
		if keys[r.Key()] {
			return true
		}
		for file := r.Object.Head().Source.File; ; file = filepath.Dir(file) { // a parent folder may have been skipped
			if files[file] {
				return true
			}
			if file == filepath.Dir(file) {
				return false
			}
		}
	}
}
