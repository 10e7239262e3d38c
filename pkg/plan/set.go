package plan

import (
	"path/filepath"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/store"
)

// SetName names a set by the paths of its manifests: absolute, sorted, each once, a line for each; "-"
// stays as it is.
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

// Skipped says which applied objects manifests may hold in a document that was skipped, and so are not to be
// pruned: one of the same name, or any of a file of which a part does not say what it is, or of a folder that was not read. An object
// without a namespace may be in the one given, too. It returns nil when nothing was skipped.
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
		for file := r.Object.Head().Source.File; ; file = filepath.Dir(file) { // a folder may have been skipped
			if files[file] {
				return true
			}
			if file == filepath.Dir(file) {
				return false
			}
		}
	}
}
