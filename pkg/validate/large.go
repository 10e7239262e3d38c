package validate

import (
	"maps"
	"slices"
	"strconv"

	v1 "toolctl.dev/toolctl/api/v1"
)

// large checks a document that may break its schema in so many places that an engine
// would need seconds and gigabytes to list them. It is asked first whether the document
// is valid, which needs no list. What is wrong is then told of about as many of its
// values, from the first, as most says; where those are right it is told that something
// behind them is wrong.
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
	b := beginning{left: most, cut: map[string]bool{}, above: map[string]bool{}}
	found := slices.DeleteFunc(s.all(b.of(doc, "")), func(p problem) bool { return !b.certain(&p) })
	for i := range found {
		if p := &found[i]; p.value != nil {
			p.value = at(doc, p.path) // which may have been shortened
		}
	}
	if len(found) == 0 {
		found = []problem{{keyword: keywordCost, limit: "a document that fits its schema", value: doc,
			detail: "document does not fit its schema, and is too large to say where: its first " + strconv.Itoa(most) + " values are right"}}
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

// beginning copies the first values of a document.
type beginning struct {
	left  int
	cut   map[string]bool // the objects that lost members, by pointer
	above map[string]bool // these, the arrays that lost items, and all that hold them
}

func (b *beginning) of(v any, path string) any {
	b.left--
	switch v := v.(type) {
	case map[string]any:
		short := make(map[string]any, min(len(v), max(b.left, 0)))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if b.left <= 0 {
				break
			}
			short[k] = b.of(v[k], v1.Pointer(path, k))
			b.above[path] = b.above[path] || b.above[v1.Pointer(path, k)]
		}
		b.cut[path] = len(short) < len(v)
		b.above[path] = b.above[path] || b.cut[path]
		return short
	case []any:
		short := make([]any, 0, min(len(v), max(b.left, 0)))
		for i, item := range v {
			if b.left <= 0 {
				break
			}
			short = append(short, b.of(item, path+"/"+strconv.Itoa(i)))
			b.above[path] = b.above[path] || b.above[path+"/"+strconv.Itoa(i)]
		}
		b.above[path] = b.above[path] || len(short) < len(v)
		return short
	}
	return v
}

// certain reports whether a problem of the copy is one of the document, too: not of a
// place that was shortened, and not within an object that lost members, on which what is
// asked of the others may depend.
func (b *beginning) certain(p *problem) bool {
	path := ""
	for _, tok := range p.path {
		if b.cut[path] {
			return false
		}
		path = v1.Pointer(path, tok)
	}
	return !b.above[path] || p.keyword == keywordUnknown || p.keyword == "uniqueItems" || p.keyword == keywordValue && len(p.allowed) == 0
}
