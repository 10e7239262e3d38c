package validate

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// large checks a document that may break its schema in so many places that an engine
// would need seconds and gigabytes to list them. It is asked first whether the document
// is valid, which needs no list. What is wrong is then found in one part of the document
// after the other, each of about as many values as most says.
func (s *Schema) large(doc any, most int) []problem {
	e := s.misfits()
	if e == nil {
		return s.all(doc)
	}
	misfit, inTime := e.holds(doc)
	switch {
	case !inTime:
		return []problem{{keyword: keywordCost, limit: "a document that can be checked in bounded time", value: doc, detail: "document takes too long to check with the patterns of its schema"}}
	case !misfit:
		return nil
	}
	var found []problem
	c := cutter{most: most, emit: func(p *part) bool {
		found = append(found, s.within(p, doc)...)
		return len(found) <= maxRepairs
	}}
	c.cut(doc)
	if len(found) == 0 {
		found = []problem{{keyword: keywordCost, limit: "a document that fits its schema", value: doc, detail: "document does not fit its schema, and is too large to say where"}}
	}
	return found
}

// misfits returns the engine that holds for what does not fit the schema; nil if it cannot be had.
func (s *Schema) misfits() *santhosh {
	s.misfitOnce.Do(func() {
		root, err := s.decode()
		if err != nil {
			return
		}
		if e, err := compileSanthosh(notURL, root, s.draft, s.cache.preload, !s.cache.options.FormatAnnotation); err == nil {
			s.misfit = e
		}
	})
	return s.misfit
}

// within returns what is wrong with a part of a document and so with the document.
func (s *Schema) within(p *part, doc any) []problem {
	// What is asked of the members of an object, or of the items of an array, may depend on
	// others that are not in the part.
	depends := map[string]bool{}
	var found []problem
	for _, ptr := range slices.Sorted(maps.Keys(p.open)) { // what holds others is before them
		o := p.open[ptr]
		nodes := s.nodesAt(o.path)
		depends[ptr] = ptr != "" && depends[ptr[:strings.LastIndexByte(ptr, '/')]]
		for _, i := range nodes {
			depends[ptr] = depends[ptr] || s.graph().nodes[i].depends(o.offset)
		}
		if !depends[ptr] && !o.again {
			found = append(found, s.sizes(nodes, at(doc, o.path), o.path)...)
		}
	}
	for _, f := range s.all(p.root) {
		if p.certain(&f, depends) {
			f.path = p.place(f.path)
			if f.value != nil {
				f.value = at(doc, f.path) // of which the part may hold a piece
			}
			found = append(found, f)
		}
	}
	return found
}

// depends reports whether what a schema says of one child may depend on another, or on
// its place, which is another when an array begins at an offset.
func (n *node) depends(offset int) bool {
	obj, _ := n.schema.(map[string]any)
	for _, kw := range []string{"if", "not", "anyOf", "oneOf", "dependentSchemas", "dependencies"} {
		if _, ok := obj[kw]; ok {
			return true
		}
	}
	return offset > 0 && len(n.byIndex) > 0
}

// sizes says what is wrong with an object or array of which an engine sees but a part:
// members that are missing, and the number of items.
func (s *Schema) sizes(nodes []int, v any, path []string) []problem {
	var found []problem
	for _, i := range nodes {
		obj, _ := s.graph().nodes[i].schema.(map[string]any)
		switch v := v.(type) {
		case map[string]any:
			required, _ := obj["required"].([]any)
			for _, r := range required {
				if name, ok := r.(string); ok {
					if _, ok := v[name]; !ok {
						found = append(found, problem{keyword: "required", path: join(path, name)})
					}
				}
			}
		case []any:
			for _, kw := range []string{"minItems", "maxItems"} {
				limit, _ := obj[kw].(json.Number)
				if n, ok := asCount(limit); ok && (kw == "minItems" && int64(len(v)) < n || kw == "maxItems" && int64(len(v)) > n) {
					found = append(found, problem{keyword: kw, path: slices.Clone(path), value: v, limit: strconv.FormatInt(n, 10)})
				}
			}
		}
	}
	return found
}

// certain reports whether a problem of the part is one of the document, too.
func (p *part) certain(f *problem, depends map[string]bool) bool {
	at := ""
	for i, tok := range f.path {
		if depends[at] {
			return false
		}
		if p.open[at] != nil && i == len(f.path)-1 && (f.keyword == "required" || f.keyword == "dependentRequired") {
			return false // it may be in another part
		}
		at = v1.Pointer(at, tok)
	}
	o := p.open[at]
	return o == nil || !o.again && !depends[at] && (f.keyword == keywordUnknown || f.keyword == keywordNames || f.keyword == "uniqueItems" || f.keyword == keywordValue && len(f.allowed) == 0)
}
