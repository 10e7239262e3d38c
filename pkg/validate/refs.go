package validate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/schema"
)

var (
	errOutside = errors.New("refers to something outside the schema document, and nothing is ever fetched: copy the definition into the schema and refer to it as #/definitions/NAME")
	errNoPlace = errors.New("refers to a place that does not exist in the schema document")
)

// resolve adds the edge of one reference, or records why it has no target.
func (g *graph) resolve(r reference) {
	to, err := g.target(r.from, r.ref)
	if err != nil {
		n := g.nodes[r.from]
		g.violation(place{n.at.doc, n.at.ptr + "/" + r.keyword}, "a reference into the schema document", strconv.Quote(r.ref),
			"%s %q %v", r.keyword, clip.Runes(r.ref, maxGot), err)
		return
	}
	if g.full {
		return
	}
	n := &g.nodes[r.from]
	if r.keyword == schema.Ref {
		n.ref = to
	}
	n.same = append(n.same, to)
}

// target finds the node that a reference in the node from names.
func (g *graph) target(from int, ref string) (int, error) {
	n := g.nodes[from]
	uri, fragment, err := joinURL(n.res.uri, ref)
	if err != nil {
		return 0, errors.New("is not a URI reference")
	}
	docURL, doc := n.at.doc, g.docs[n.at.doc]
	res := doc.resource(docURL, uri)
	if res == nil {
		if docURL, err = g.load(uri, n.res.draft); err != nil {
			return 0, err
		}
		if docURL == "" {
			return g.addOpaque(place{uri, fragment}), nil
		}
		doc = g.docs[docURL]
		res = doc.resources[0]
	}
	ptr := res.ptr + fragment
	if fragment != "" && fragment[0] != '/' {
		var ok bool
		if ptr, ok = res.anchors[fragment]; !ok {
			return 0, fmt.Errorf("refers to the anchor %q, which does not exist in the schema document", clip.Runes(fragment, maxGot))
		}
	}
	at := place{docURL, ptr}
	if i, ok := g.index[at]; ok {
		return i, nil
	}
	// A place that is not below a keyword, such as #/components/schemas/Pet.
	found, _, ok := schema.At(doc.root, ptr)
	if !ok {
		return 0, errNoPlace
	}
	switch found.(type) {
	case bool, map[string]any:
		if g.found++; g.found > maxResources {
			g.full = true
			return 0, nil
		}
		return g.add(at, found, doc.enclosing(ptr)), nil
	}
	return 0, fmt.Errorf("refers to %s, where a schema belongs", describe(found))
}

// load adds the document of a URL and returns its key in docs, or "" for a metaschema that only the
// engine has. It never fetches a document.
func (g *graph) load(uri string, draft Draft) (string, error) {
	if name, ok := schema.MetaschemaName(uri); ok {
		d, isRoot := schema.DraftOf(uri)
		if !isRoot && !strings.Contains(name, "/meta/") {
			return "", errOutside
		}
		if !isRoot || d != draft || draft >= Draft2019 {
			return "", nil
		}
		uri = strings.TrimSuffix(d.String(), "#")
		if _, ok := g.docs[uri]; !ok {
			text, err := metaschemaText(d)
			if err != nil {
				return "", err
			}
			g.addDocument(uri, text, d)
		}
		return uri, nil
	}
	if _, ok := g.docs[uri]; ok {
		return uri, nil
	}
	root, ok, err := g.preload(uri)
	if !ok {
		return "", errOutside
	}
	if err != nil {
		return "", fmt.Errorf("refers to a bundled document that cannot be read: %w", err)
	}
	g.addDocument(uri, root, draft)
	return uri, nil
}

func (g *graph) addOpaque(at place) int {
	if i, ok := g.index[at]; ok {
		return i
	}
	i := len(g.nodes)
	g.index[at] = i
	const cost = 100 // a metaschema of 2020-12 applies some 60 subschemas to each schema
	g.nodes = append(g.nodes, node{at: at, ref: -1, opaque: true, checks: cost, anyName: []int{i}, anyItem: []int{i}})
	return i
}

// resolveDynamic adds an edge for each target that "$dynamicRef" and
// "$recursiveRef" may have at run time: every place with the same anchor.
func (g *graph) resolveDynamic() {
	for _, r := range g.pending {
		n := &g.nodes[r.from]
		switch r.keyword {
		case schema.DynamicRef:
			_, anchor, _ := strings.Cut(r.ref, "#")
			if anchor == "" || anchor[0] == '/' {
				continue
			}
			for i := range g.nodes {
				if obj, ok := g.nodes[i].schema.(map[string]any); ok && obj["$dynamicAnchor"] == anchor {
					n.addSame(i)
				}
			}
		case schema.RecursiveRef:
			for i := range g.nodes {
				if obj, ok := g.nodes[i].schema.(map[string]any); ok && obj["$recursiveAnchor"] == true {
					n.addSame(i)
				}
			}
		}
	}
}

func (n *node) addSame(to int) {
	for _, i := range n.same {
		if i == to {
			return
		}
	}
	n.same = append(n.same, to)
}

func (d *document) resource(docURL, uri string) *resource {
	if uri == docURL {
		return d.resources[0]
	}
	for _, r := range d.resources {
		if r.uri == uri {
			return r
		}
	}
	return nil
}

// enclosing returns the innermost resource that contains the place.
func (d *document) enclosing(ptr string) *resource {
	best := d.resources[0]
	for _, r := range d.resources[1:] {
		if strings.HasPrefix(ptr, r.ptr+"/") && len(r.ptr) > len(best.ptr) {
			best = r
		}
	}
	return best
}
