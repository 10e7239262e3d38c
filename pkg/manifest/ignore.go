package manifest

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"toolctl.dev/toolctl/internal/ignore"
)

// ignoreFile is the name of files with patterns in Git syntax, which exclude paths in their folder and its
// subfolders.
const ignoreFile = ".toolctlignore"

// ignores holds the patterns found in one walk through a folder, keyed by the folder of the pattern file.
type ignores map[string]ignore.List

// enter reads the patterns of a folder.
func (in ignores) enter(root fs.FS, dir string) error {
	const most = 1 << 20
	data, err := readFile(root, path.Join(dir, ignoreFile), most)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%s: the file %s", ignoreFile, strings.TrimPrefix(err.Error(), "it "))
	}
	in[dir] = ignore.Parse(data)
	return nil
}

// skips reports whether a path within the folder is excluded. The nearest patterns decide. Paths below an ignored
// folder stay excluded.
func (in ignores) skips(p string, dir bool) bool {
	if len(in) == 0 {
		return false
	}
	for at := path.Dir(p); ; at = path.Dir(at) {
		if list, ok := in[at]; ok {
			if out, fits := list.Match(strings.TrimPrefix(p, strings.TrimPrefix(at+"/", "./")), dir); fits {
				return out
			}
		}
		if at == "." {
			return false
		}
	}
}

// knownFiles are files of other programs that never contain manifests.
var knownFiles = map[string]bool{
	"package.json": true, "package-lock.json": true, "npm-shrinkwrap.json": true, "tsconfig.json": true,
	"jsconfig.json": true, "pnpm-lock.yaml": true, "pnpm-workspace.yaml": true,
}

// isForeign reports whether a document without apiVersion and kind is of a type often stored beside manifests: an
// OpenAPI or Swagger document, a Compose file, or a cassette of recorded calls.
func isForeign(n *yaml.Node) bool {
	if n.Kind != yaml.MappingNode {
		return false
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		switch value := n.Content[i+1]; n.Content[i].Value {
		case "openapi", "swagger":
			if value.Kind == yaml.ScalarNode {
				return true
			}
		case "services":
			if value.Kind == yaml.MappingNode {
				return true
			}
		case "calls":
			if isRecorded(value) {
				return true
			}
		}
	}
	return false
}

// isRecorded reports whether the calls of a document are those of a cassette: an empty list, or a list whose first
// call names its tool.
func isRecorded(calls *yaml.Node) bool {
	if calls.Kind != yaml.SequenceNode || len(calls.Content) == 0 {
		return calls.Kind == yaml.SequenceNode
	}
	tool, _ := member(calls.Content[0], "tool")
	return tool != nil
}

// isOverlay reports whether a path names a kustomization file, with which a folder builds its manifests from others:
// see [toolctl.dev/toolctl/pkg/overlay].
func isOverlay(name string) bool {
	switch filepath.Base(name) {
	case "kustomization.yaml", "kustomization.yml":
		return true
	}
	return false
}

// kustomization records whether a kustomization.yaml changes its resources, and which patch files it uses: patch
// files hold parts of objects, which are not manifests.
func (r *reader) kustomization(n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, list := n.Content[i].Value, n.Content[i+1]
		switch key {
		case "apiVersion", "kind", "metadata", "resources":
			continue
		}
		r.overlay = true
		if !strings.HasPrefix(key, "patches") || list.Kind != yaml.SequenceNode {
			continue
		}
		for _, item := range list.Content {
			file := item.Value // as in patchesStrategicMerge
			if item.Kind == yaml.MappingNode {
				_, file = member(item, "path")
			}
			if file != "" {
				r.patches = append(r.patches, filepath.Join(filepath.Dir(r.name), filepath.FromSlash(file)))
			}
		}
	}
}
