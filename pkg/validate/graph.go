package validate

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/schema"
)

// rootURL is the base of references in a schema that has no "$id". RFC 2606 reserves .invalid, so
// no such host can exist.
const rootURL = "https://schema.invalid/root"

var supportedDrafts = strings.Join([]string{Draft4.String(), Draft6.String(), Draft7.String(), Draft2019.String(), Draft2020.String()}, ", ")

// Bounds of one schema, including all documents that it refers to.
const (
	maxSubschemas = 10_000
	maxResources  = 1_000 // subschemas with an "$id", and places that are schemas only because a reference names them
	maxList       = 10_000
)

// A graph is a schema with its references resolved. It records which subschemas apply to which
// values. It is built before an engine sees the schema, and decides whether an engine may.
type graph struct {
	nodes []node
	// docs are the schema itself, under rootURL, and the preloaded documents
	// and metaschemas that it refers to, under their URLs.
	docs       map[string]*document
	index      map[place]int
	preload    func(url string) (any, bool, error)
	pending    []reference
	violations []v1.Violation
	found      int  // places that are schemas only because a reference names them
	full       bool // more subschemas than the bounds allow; the graph is incomplete
	// order lists the nodes, each before those that are applied in place with it. It is nil if
	// there is a cycle.
	order []int
}

// place is the location of a schema: a document and a JSON pointer into it.
type place struct{ doc, ptr string }

type node struct {
	at     place
	schema any // bool or map
	res    *resource
	// ref is the node that the reference names, or -1 without a reference.
	ref int
	// edges by role; same includes the targets of references.
	same    []int
	byName  map[string]int
	anyName []int
	names   []int
	byIndex []int
	anyItem []int
	// opaque marks a metaschema whose text is only known to an engine.
	opaque bool
	// checks and text are the cost of applying the node to a value, without
	// its edges: steps, and steps for each byte of a string.
	checks, text float64
}

// resource is a schema with its own URI (2020-12 core, section 4.3.5).
type resource struct {
	uri, ptr string
	draft    Draft
	anchors  map[string]string // name to pointer
}

type document struct {
	root      any
	resources []*resource
}

type reference struct {
	from    int
	keyword string
	ref     string
}

func newGraph(root any, draft Draft, preload func(string) (any, bool, error)) *graph {
	g := &graph{docs: map[string]*document{}, index: map[place]int{}, preload: preload}
	g.addDocument(rootURL, root, draft)
	for i := 0; i < len(g.pending) && !g.full; i++ { // resolving may load documents and add to pending
		g.resolve(g.pending[i])
	}
	if g.full {
		g.violations = []v1.Violation{{Expected: fmt.Sprintf("at most %d subschemas", maxSubschemas), Got: "more",
			Message: fmt.Sprintf("schema has more than %d subschemas or %d of them with an $id or outside $defs", maxSubschemas, maxResources)}}
		return g
	}
	g.resolveDynamic()
	g.checkCycles()
	return g
}

// violation records an error at a pointer of the schema document. Violations of
// preloaded documents name the document.
func (g *graph) violation(at place, expected, got, format string, args ...any) {
	f := v1.Violation{Path: at.ptr, Expected: expected, Got: clip.Runes(got, maxGot), Message: fmt.Sprintf(format, args...)}
	if at.doc != rootURL {
		f.Path = ""
		f.Message = fmt.Sprintf("in %s#%s: %s", at.doc, at.ptr, f.Message)
	}
	g.violations = append(g.violations, f)
}

func (g *graph) addDocument(url string, root any, draft Draft) {
	doc := &document{root: root}
	g.docs[url] = doc
	g.add(place{doc: url}, root, &resource{uri: url, draft: draft})
}

// add makes the node of a schema and of all schemas inside it, and returns its index.
func (g *graph) add(at place, raw any, res *resource) int {
	if i, ok := g.index[at]; ok {
		return i
	}
	if len(g.nodes) >= maxSubschemas {
		g.full = true
		return 0
	}
	i := len(g.nodes)
	g.index[at] = i
	g.nodes = append(g.nodes, node{at: at, schema: raw, ref: -1})
	obj, _ := raw.(map[string]any)
	res = g.enter(at, obj, res)
	g.nodes[i].res = res
	if obj == nil {
		g.nodes[i].checks = 1
		return i
	}
	ref, hasRef := obj[schema.Ref].(string)
	if hasRef {
		g.pending = append(g.pending, reference{i, schema.Ref, ref})
	}
	for _, dynamic := range []struct {
		keyword string
		draft   Draft
	}{{schema.RecursiveRef, Draft2019}, {schema.DynamicRef, Draft2020}} {
		if r, ok := obj[dynamic.keyword].(string); ok && res.draft == dynamic.draft {
			g.pending = append(g.pending, reference{i, dynamic.keyword, r})
		}
	}
	// Up to draft-07 all siblings of a reference are ignored, but references may name them.
	alone := hasRef && res.draft <= Draft7
	if !alone {
		g.weigh(i, obj)
	}
	for _, sub := range schema.Subschemas(obj, at.ptr, res.draft) {
		j := g.add(place{at.doc, sub.Pointer}, sub.Schema, res)
		if g.full {
			return i
		}
		if !alone {
			g.nodes[i].connect(sub, j)
		}
	}
	return i
}

func (n *node) connect(sub schema.Subschema, to int) {
	switch sub.Role {
	case schema.Same:
		n.same = append(n.same, to)
	case schema.ByName:
		if n.byName == nil {
			n.byName = map[string]int{}
		}
		n.byName[sub.Token] = to
	case schema.AnyName:
		n.anyName = append(n.anyName, to)
	case schema.Names:
		n.names = append(n.names, to)
	case schema.ByIndex:
		n.byIndex = append(n.byIndex, to)
	case schema.AnyItem:
		n.anyItem = append(n.anyItem, to)
	}
}

// enter returns the resource that a schema belongs to, which is a new one if the schema has an id.
// It also records the schema's anchors.
func (g *graph) enter(at place, obj map[string]any, res *resource) *resource {
	doc := g.docs[at.doc]
	if at.ptr == "" {
		doc.resources = append(doc.resources, res)
	}
	if obj == nil {
		return res
	}
	draft := res.draft
	if s, ok := obj["$schema"].(string); ok {
		if d, ok := g.draft(s, 0); ok {
			draft = d
		} else if at.ptr == "" || schemaID(obj, draft) != "" {
			g.violation(place{at.doc, at.ptr + "/$schema"}, "one of "+supportedDrafts, strconv.Quote(s),
				"unknown $schema %q: expected one of %s", clip.Runes(s, maxGot), supportedDrafts)
		}
	}
	id := schemaID(obj, draft)
	if id == "" && at.ptr != "" {
		draft = res.draft // "$schema" counts only beside an id
		id = schemaID(obj, draft)
	}
	switch {
	case id != "":
		res = g.enterResource(at, id, draft, res)
	case at.ptr == "":
		res.draft = draft
	}
	g.enterAnchors(at, obj, res)
	return res
}

func (g *graph) enterResource(at place, id string, draft Draft, outer *resource) *resource {
	doc := g.docs[at.doc]
	idPlace := place{at.doc, at.ptr + "/" + idKeyword(draft)}
	uri, _, err := joinURL(outer.uri, id)
	if err != nil {
		g.violation(idPlace, "a URI reference", strconv.Quote(id), "%q is not a URI reference", clip.Runes(id, maxGot))
		return outer
	}
	if at.ptr == "" {
		outer.uri, outer.draft = uri, draft
		return outer
	}
	for _, r := range doc.resources {
		if r.uri == uri && r.ptr != at.ptr {
			g.violation(idPlace, "a unique id", strconv.Quote(id), "id %q is used twice, here and at %q", clip.Runes(id, maxGot), r.ptr)
			return outer
		}
	}
	if len(doc.resources) >= maxResources {
		g.full = true
	}
	res := &resource{uri: uri, ptr: at.ptr, draft: draft}
	doc.resources = append(doc.resources, res)
	return res
}

func (g *graph) enterAnchors(at place, obj map[string]any, res *resource) {
	var found []string
	if res.draft <= Draft7 {
		if _, ok := obj[schema.Ref]; !ok {
			if id, ok := obj[idKeyword(res.draft)].(string); ok {
				if _, frag, err := splitURL(id); err == nil && frag != "" && frag[0] != '/' {
					found = append(found, frag)
				}
			}
		}
	} else {
		for _, kw := range []string{"$anchor", "$dynamicAnchor"} {
			if s, ok := obj[kw].(string); ok && (kw == "$anchor" || res.draft >= Draft2020) {
				found = append(found, s)
			}
		}
	}
	for _, a := range found {
		if ptr, ok := res.anchors[a]; ok && ptr != at.ptr {
			g.violation(at, "a unique anchor", strconv.Quote(a), "anchor %q is used twice, here and at %q", clip.Runes(a, maxGot), ptr)
			continue
		}
		if res.anchors == nil {
			res.anchors = map[string]string{}
		}
		res.anchors[a] = at.ptr
	}
}

// draft follows "$schema" through preloaded metaschemas to one of the known drafts.
func (g *graph) draft(url string, hops int) (Draft, bool) {
	if d, ok := schema.DraftOf(url); ok {
		return d, true
	}
	const maxHops = 8
	v, ok, err := g.preload(strings.TrimSuffix(url, "#"))
	if !ok || err != nil || hops > maxHops {
		return 0, false
	}
	obj, _ := v.(map[string]any)
	next, _ := obj["$schema"].(string)
	return g.draft(next, hops+1)
}

func idKeyword(d Draft) string {
	if d == Draft4 {
		return "id"
	}
	return "$id"
}

// schemaID returns the id of a schema without its fragment.
func schemaID(obj map[string]any, draft Draft) string {
	if _, ok := obj[schema.Ref]; ok && draft <= Draft7 {
		return ""
	}
	id, _ := obj[idKeyword(draft)].(string)
	id, _, _ = strings.Cut(id, "#")
	return id
}

func splitURL(ref string) (base, fragment string, err error) {
	base, fragment, _ = strings.Cut(ref, "#")
	fragment, err = url.PathUnescape(fragment)
	return base, fragment, err
}

// joinURL resolves ref against base (RFC 3986, section 5) and splits off the fragment.
func joinURL(base, ref string) (uri, fragment string, err error) {
	ref, fragment, err = splitURL(ref)
	if err != nil {
		return "", "", err
	}
	b, err := url.Parse(base)
	if err != nil {
		return "", "", err
	}
	r, err := url.Parse(ref)
	if err != nil {
		return "", "", err
	}
	joined := b.ResolveReference(r)
	if !r.IsAbs() && b.Opaque != "" {
		joined.Opaque = b.Opaque // net/url drops it: go.dev/issue/66084
	}
	return joined.String(), fragment, nil
}
