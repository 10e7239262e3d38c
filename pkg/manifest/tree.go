package manifest

import (
	"context"
	"io/fs"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Tree is one object as YAML nodes, for programs that change manifests before they are decoded.
type Tree struct {
	Node *yaml.Node
	// File is the file of the object; Origins are the files of nodes from other files.
	File    string
	Origins map[*yaml.Node]string
	// Folder is the folder in which relative paths of the object must stay.
	Folder string
}

// Trees parses the documents of a file without decoding them. It resolves aliases and merge keys, gives scalars the
// types of YAML 1.2, and returns the items of a List separately.
func Trees(file string, data []byte) ([]*yaml.Node, []v1.Violation) {
	var trees []*yaml.Node
	var violations []v1.Violation
	yield := func(n *yaml.Node) bool {
		d := &document{file: file, root: n, anchors: map[*yaml.Node]int{}}
		d.normalize(n)
		if !d.full {
			d.unshare(n, map[*yaml.Node]bool{})
		}
		violations = append(violations, v1.Errors(d.finish())...)
		_, kind := member(n, "kind")
		_, api := member(n, "apiVersion")
		switch items, _ := member(n, "items"); {
		case n.Kind == yaml.ScalarNode && n.Tag == tagNull: // an empty document
		case kind == "List" && (api == "v1" || api == v1.APIVersion) && items != nil:
			for i := 0; i+1 < len(n.Content); i += 2 {
				if n.Content[i] == items {
					trees = append(trees, n.Content[i+1].Content...)
				}
			}
		default:
			trees = append(trees, n)
		}
		return len(violations) == 0
	}
	if v := Documents(file, data, yield); v != nil {
		violations = append(violations, *v)
	}
	return trees, violations
}

// Quote quotes the texts in a tree that YAML 1.2 would not read as text without quotes. It also quotes generated
// texts, which have no place, if YAML 1.1 would not read them as text.
func Quote(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.Tag == tagStr && n.Style&(quoted|yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
		if tag, _, reason := resolvePlain(n.Value); tag != tagStr || reason != "" || n.Line == 0 && n.Value != "" && ambiguous(n.Value) {
			n.Style |= yaml.DoubleQuotedStyle
		}
	}
	for _, c := range n.Content {
		Quote(c)
	}
}

// unshare copies nodes that aliases share, so that changing one node does not change the others.
func (d *document) unshare(n *yaml.Node, seen map[*yaml.Node]bool) {
	seen[n], n.Anchor = true, ""
	for i, c := range n.Content {
		if !d.spend(c, 1) {
			return
		}
		if seen[c] {
			copied := *c
			copied.Content = append([]*yaml.Node(nil), c.Content...)
			n.Content[i], c = &copied, &copied
		}
		d.unshare(c, seen)
	}
}

// Built is the result of building a path.
type Built struct {
	Trees      []Tree
	Violations []v1.Violation
	// Files is the number of files read, and Folders are the folders that contain them.
	Files   int
	Folders []string
}

// build calls Options.Build for the path and keeps the result. It reports whether the path was built.
func (l *loader) build(ctx context.Context, path string) (bool, error) {
	if l.opts.Build == nil {
		return false, nil
	}
	b, err := l.opts.Build(ctx, path)
	if b != nil {
		l.built = append(l.built, b)
	}
	return b != nil, err
}

// trees reads objects that have been parsed.
func (l *loader) trees(trees []Tree) []*source {
	folders := map[string]fs.FS{}
	var sources []*source
	for _, t := range trees {
		s := &source{reader: reader{name: t.File, named: true, opts: l.opts, origins: t.Origins, variables: true}}
		if _, ok := folders[t.Folder]; !ok {
			folders[t.Folder] = nil
			if root, err := l.open(t.Folder); err == nil {
				folders[t.Folder] = root.FS()
			}
		}
		if root := folders[t.Folder]; root != nil {
			if dir, err := filepath.Rel(t.Folder, filepath.Dir(t.File)); err == nil {
				s.files = &folder{root: root, shown: t.Folder, dir: filepath.ToSlash(dir), limit: l.opts.MaxFileBytes}
			}
		}
		s.document(t.Node)
		s.files, s.anchors = nil, nil
		sources = append(sources, s)
	}
	return sources
}

// ReadTrees reads objects that have been parsed.
func ReadTrees(trees []Tree, o Options) *Set {
	l := &loader{opts: o.withDefaults(), built: []*Built{{Trees: trees}}}
	defer l.close()
	return l.collect()
}
