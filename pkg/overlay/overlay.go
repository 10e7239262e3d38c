// Package overlay builds the manifests of an environment from a base and its differences. It
// supports a documented subset of kustomize (docs/overlays.md) and works on YAML nodes. Numbers
// keep every digit, comments and places are kept, and a renamed object is renamed in every policy,
// prompt, scenario or tool that names it. A kustomize field outside the subset is refused by name.
package overlay

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/pkg/manifest"
)

// Limits of one build.
const (
	maxDepth     = 32         // nested folders
	maxFiles     = 10_000     // files read
	maxFileBytes = 10 << 20   // per file
	maxObjects   = 100_000    // in all folders together
	maxGrowth    = 50_000_000 // nodes copied by patches and replacements
)

// names are the possible names of the kustomization file, as in kustomize.
var names = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// Build builds the folder dir, whose kustomization.yaml names the other files. It reads nothing
// outside root. If root is "", there is no such limit, and a folder may name its parent folders, as
// in kustomize. It returns an error if there is nothing to build. Errors in files are violations of
// the result, which then has no trees.
func Build(ctx context.Context, dir, root string) (*manifest.Built, error) {
	b := &builder{ctx: ctx, trees: map[*yaml.Node]string{}}
	if root != "" {
		abs, err := filepath.Abs(root)
		if err != nil {
			return nil, err
		}
		b.root = abs
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("%s: expected a folder with %s", dir, names[0])
	}
	if _, err := findFile(dir); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	objects := b.folder(dir, v1.Source{File: dir})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	res := &manifest.Built{Violations: b.violations, Files: b.files, Folders: b.folders}
	if len(b.violations) > 0 {
		manifest.SortViolations(res.Violations)
		return res, nil
	}
	for _, o := range objects {
		if o.kind() == kindConfigMap {
			continue // only replacements use it
		}
		manifest.Quote(o.node)
		res.Trees = append(res.Trees, manifest.Tree{Node: o.node, File: o.file, Folder: o.folder, Origins: b.trees})
	}
	return res, nil
}

// Write returns the manifests as YAML.
func Write(trees []manifest.Tree) ([]byte, error) {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	for _, t := range trees {
		if err := enc.Encode(t.Node); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), enc.Close()
}

type builder struct {
	ctx        context.Context
	root       string
	folders    []string // folders that were built
	open       []string // folders being built, to find a folder that includes itself
	files      int
	copied     int
	trees      map[*yaml.Node]string // source files of nodes that are not from their object's file
	violations []v1.Violation
}

// object is one manifest during the build.
type object struct {
	node   *yaml.Node
	file   string
	folder string  // folder in which its relative paths must stay
	ids    []ident // every identity it had; the last is the current one
	// followed is the index of the identity by which other objects name it.
	followed int
}

type ident struct{ namespace, name string }

const kindConfigMap = "ConfigMap"

func (o *object) id() ident    { return o.ids[len(o.ids)-1] }
func (o *object) kind() string { return text(o.node, "kind") }
func (o *object) String() string {
	return o.kind() + " " + o.id().namespace + "/" + o.id().name
}

// was reports whether the object has or had the name. An empty namespace matches any namespace.
func (o *object) was(kind, namespace, name string) bool {
	return o.kind() == kind && slices.ContainsFunc(o.ids, func(id ident) bool { return id.name == name && (namespace == "" || id.namespace == namespace) })
}

func (b *builder) fail(at v1.Source, format string, args ...any) {
	if len(b.violations) < 1000 {
		b.violations = append(b.violations, v1.Violation{Source: at, Message: fmt.Sprintf(format, args...)})
	}
}

// at returns the place of a node in its file.
func at(file string, n *yaml.Node) v1.Source {
	return v1.Source{File: file, Line: n.Line, Column: n.Column}
}

// Is reports whether a folder has a kustomization.yaml.
func Is(dir string) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		info, err := os.Stat(filepath.Join(dir, n))
		return err == nil && !info.IsDir()
	})
}

func findFile(dir string) (string, error) {
	found := ""
	for _, n := range names {
		info, err := os.Stat(filepath.Join(dir, n))
		if err != nil || info.IsDir() {
			continue
		}
		if found != "" {
			return "", fmt.Errorf("it has %s and %s: keep one", found, n)
		}
		found = n
	}
	if found == "" {
		return "", fmt.Errorf("there is no %s in it", names[0])
	}
	return found, nil
}

// folder builds a folder. from is the place that includes it.
func (b *builder) folder(dir string, from v1.Source) []*object {
	if b.ctx.Err() != nil {
		return nil
	}
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	switch {
	case err != nil:
		b.fail(from, "%s: %v", dir, regular.Reason(err))
		return nil
	case slices.Contains(b.open, abs):
		b.fail(from, "%s includes itself: a folder cannot be built from itself", dir)
		return nil
	case len(b.open) >= maxDepth:
		b.fail(from, "%s: more than %d levels of folders", dir, maxDepth)
		return nil
	case b.root != "" && !within(b.root, abs):
		b.fail(from, "%s is outside %s: only files inside it are read", dir, b.root)
		return nil
	}
	name, err := findFile(dir)
	if err != nil {
		b.fail(from, "%s: %v", dir, err)
		return nil
	}
	b.open, b.folders = append(b.open, abs), append(b.folders, dir)
	defer func() { b.open = b.open[:len(b.open)-1] }()
	rooted, err := os.OpenRoot(dir)
	if err != nil {
		b.fail(from, "%s: %v", dir, regular.Reason(err))
		return nil
	}
	defer rooted.Close()
	l := &layer{builder: b, dir: dir, fs: rooted.FS(), file: filepath.Join(dir, name)}
	data, ok := l.read(name, from)
	if !ok {
		return nil
	}
	if !l.parse(data) {
		return nil
	}
	return l.build()
}

func within(root, abs string) bool {
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	rel, err := filepath.Rel(root, abs)
	return err == nil && filepath.IsLocal(rel)
}

// layer is the build of one folder.
type layer struct {
	*builder
	dir     string
	fs      fs.FS
	file    string // its kustomization file, as shown in messages
	spec    kustomization
	place   func(pointer string) v1.Source // places in the kustomization file
	misfits []v1.Violation                 // values of the wrong type
	objects []*object
}

// read reads a file in the folder or below it. Kustomize has the same restriction by default.
func (l *layer) read(name string, from v1.Source) ([]byte, bool) {
	if l.files++; l.files > maxFiles {
		l.fail(from, "more than %d files", maxFiles)
		return nil, false
	}
	clean := path.Clean(filepath.ToSlash(name))
	if !fs.ValidPath(clean) {
		l.fail(from, "%s is outside the folder: files must be in the folder or below it; folders may be anywhere", name)
		return nil, false
	}
	data, err := regular.ReadFS(l.fs, clean, maxFileBytes)
	if err != nil {
		l.fail(from, "%s: %v", filepath.Join(l.dir, name), regular.Reason(err))
	}
	return data, err == nil
}

// build executes the build steps in the order of kustomize.
func (l *layer) build() []*object {
	for i, r := range l.spec.Resources {
		l.resource(r, l.place(v1.Pointer("/resources", strconv.Itoa(i))))
	}
	l.generate()
	l.duplicates()
	if len(l.violations) > 0 {
		return nil
	}
	for i := range l.spec.Patches {
		l.patch(&l.spec.Patches[i], v1.Pointer("/patches", strconv.Itoa(i)))
	}
	l.rename()
	l.label()
	for i := range l.spec.Replacements {
		l.replace(&l.spec.Replacements[i], l.place(v1.Pointer("/replacements", strconv.Itoa(i))))
	}
	return l.objects
}

// resource adds a file, or the build result of another folder.
func (l *layer) resource(r string, from v1.Source) {
	if strings.Contains(r, "://") || strings.HasPrefix(r, "git@") || strings.Contains(r, "?ref=") {
		l.fail(from, "resources: %q is remote, and nothing is fetched: clone it and name the folder", r)
		return
	}
	if filepath.IsAbs(r) || r == "" {
		l.fail(from, "resources: %q: expected a path relative to %s", r, l.file)
		return
	}
	shown := filepath.Join(l.dir, filepath.FromSlash(r))
	info, err := os.Stat(shown)
	if err != nil {
		l.fail(from, "resources: %s: %v", shown, regular.Reason(err))
		return
	}
	if info.IsDir() {
		l.objects = append(l.objects, l.folder(shown, from)...)
		return
	}
	data, ok := l.read(r, from)
	if !ok {
		return
	}
	nodes, violations := manifest.Trees(shown, data)
	l.violations = append(l.violations, violations...)
	for _, n := range nodes {
		if len(l.objects) >= maxObjects {
			l.fail(from, "more than %d objects", maxObjects)
			return
		}
		l.add(n, shown)
	}
}

func (l *layer) add(n *yaml.Node, shown string) {
	api, kind, name := text(n, "apiVersion"), text(n, "kind"), text(n, "metadata", "name")
	ours := api == v1.APIVersion || strings.HasPrefix(api, v1.PromptKitGroup+"/")
	switch {
	case n.Kind != yaml.MappingNode || kind == "":
		l.fail(at(shown, n), "expected an object with apiVersion, kind and metadata.name")
	case !ours:
		l.fail(at(shown, n), "%s %s is not one of toolctl's kinds: keep it in a separate kustomization", api, kind)
	case name == "":
		l.fail(at(shown, n), "%s: metadata.name is missing", kind)
	default:
		l.objects = append(l.objects, &object{node: n, file: shown, folder: l.dir, ids: []ident{{namespaceOf(n), name}}})
	}
}

func namespaceOf(n *yaml.Node) string {
	if ns := text(n, "metadata", "namespace"); ns != "" {
		return ns
	}
	return v1.DefaultNamespace
}

func (l *layer) duplicates() {
	first := map[string]*object{}
	for _, o := range l.objects {
		if other := first[o.String()]; other != nil {
			l.fail(at(o.file, o.node), "%s already exists, at %s", o, at(other.file, other.node))
		} else {
			first[o.String()] = o
		}
	}
}
