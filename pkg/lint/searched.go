package lint

import (
	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/search"
)

// indistinguishableTools finds tools to which a search gives nearly the same scores as to another tool of the namespace.
func indistinguishableTools(s *surface, found func(Finding)) {
	servers := map[string]*v1.MCPServer{}
	for _, m := range s.servers {
		servers[m.Namespace()+"/"+m.Metadata.Name] = m
	}
	place, entries := map[*search.Entry]int{}, []*search.Entry{}
	tools := s.offered()
	for i, t := range tools {
		m := t.manifest
		if m == nil {
			m = &v1.Tool{Spec: v1.ToolSpec{Description: t.description}}
		}
		e := search.Analyse(search.DocumentOf(t.name, m, servers[t.subject.Namespace+"/"+t.subject.Server]))
		entries, place[e] = append(entries, e), i
	}
	reported := map[int]bool{}
	for _, p := range search.New(entries).Alike(search.TooAlike) {
		first, second := min(place[p.A], place[p.B]), max(place[p.A], place[p.B])
		a, b := tools[first], tools[second]
		if reported[second] || a.subject.Namespace != b.subject.Namespace {
			continue
		}
		reported[second] = true
		f := b.at("", "a search cannot tell it from %s: they have the same words", a.name)
		f.also = a.head
		found(f)
	}
}
