package validate

import (
	"slices"
	"strings"
)

// propertyNames lists the members that the schema knows at a path of the document.
func (s *Schema) propertyNames(path []string) []string {
	g := s.graph()
	nodes := map[int]bool{0: true}
	known := map[string]bool{}
	for step := 0; ; step++ {
		todo := make([]int, 0, len(nodes))
		for i := range nodes {
			todo = append(todo, i)
		}
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
			break
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
	for i := range nodes {
		for name := range g.nodes[i].byName {
			known[name] = true
		}
	}
	names := make([]string, 0, len(known))
	for name := range known {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// placeNames finds the objects that refused property names belong to: see [explainer.name].
func (s *Schema) placeNames(problems []problem, doc any) {
	type name struct {
		node, depth int
		property    string
	}
	fits := map[name][][]string{} // the objects of each, in their order
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
				objects = append(objects, splitPointer(path))
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

func splitPointer(ptr string) []string {
	if ptr == "" {
		return nil
	}
	tokens := strings.Split(ptr[1:], "/")
	for i, t := range tokens {
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
	}
	return tokens
}
