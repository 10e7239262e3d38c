package validate

import (
	"maps"
	"slices"
	"strings"
	v1 "toolctl.dev/toolctl/api/v1"
)

// propertyNames lists the properties that the schema declares at a path of the document.
func (s *Schema) propertyNames(path []string) []string {
	known := map[string]bool{}
	for _, i := range s.nodesAt(path) {
		for name := range s.graph().nodes[i].byName {
			known[name] = true
		}
	}
	return slices.Sorted(maps.Keys(known))
}

// nodesAt lists the subschemas that may be applied to the value at a path of a document.
func (s *Schema) nodesAt(path []string) []int {
	g := s.graph()
	nodes := map[int]bool{0: true}
	for step := 0; ; step++ {
		todo := slices.Collect(maps.Keys(nodes))
		for len(todo) > 0 {
			i := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			for _, j := range g.nodes[i].same {
				if !nodes[j] {
					nodes[j] = true
					todo = append(todo, j)
				}
			}
		}
		if step == len(path) {
			return slices.Sorted(maps.Keys(nodes))
		}
		next := map[int]bool{}
		for i := range nodes {
			n := &g.nodes[i]
			if j, ok := n.byName[path[step]]; ok {
				next[j] = true
			}
			for _, list := range [][]int{n.anyName, n.byIndex, n.anyItem} {
				for _, j := range list {
					next[j] = true
				}
			}
		}
		nodes = next
	}
}

// placeNames finds the objects to which refused property names belong: see [explainer.name].
func (s *Schema) placeNames(problems []problem, doc any) {
	type name struct {
		node, depth int
		property    string
	}
	fits := map[name][][]string{} // the objects with each name, in order
	walked := map[int]bool{}
	for i := range problems {
		p := &problems[i]
		if p.keyword != keywordNames || p.schema == "" {
			continue
		}
		url, ptr, err := splitURL(strings.TrimSuffix(p.schema, "/propertyNames"))
		if err != nil {
			continue
		}
		g := s.graph()
		node, ok := g.index[place{url, ptr}]
		if !ok {
			continue
		}
		if !walked[node] {
			walked[node] = true
			var objects [][]string
			for _, path := range g.visits(node, doc) {
				objects = append(objects, v1.Tokens(path))
			}
			slices.SortFunc(objects, comparePaths)
			for _, tokens := range objects {
				obj, _ := at(doc, tokens).(map[string]any)
				for property := range obj {
					key := name{node, len(tokens), property}
					fits[key] = append(fits[key], tokens)
				}
			}
		}
		key := name{node, len(p.path) - 1, p.path[len(p.path)-1]}
		if of := fits[key]; len(of) > 0 {
			p.path, fits[key] = join(of[0], key.property), of[1:]
		}
	}
}
