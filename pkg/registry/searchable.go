package registry

import (
	"fmt"

	"toolctl.dev/toolctl/internal/wirename"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/search"
)

// Document returns what a search knows of a tool that clients call by the given name.
func (i Item) Document(name string) search.Document {
	return search.DocumentOf(name, i.Tool(), i.owner)
}

// Searched reports whether a search may find a tool: some calls may pass the policies and an overlay, which may be nil, and
// preference.enabled is not false.
func (i Item) Searched(o *policy.Overlay) bool {
	blocked, _ := i.Under(o, "")
	return i.Tool().Offered() && blocked == nil && !i.Object.Head().Broken()
}

// Searchable is an index of tools by the names by which MCP clients know them.
type Searchable struct {
	*search.Index
	// Tools are the tools of the index by these names.
	Tools map[string]Item
	wire  map[string]string // the names by Item.FullName
}

// NewSearchable returns an index of the tools for which in returns true. The names depend on all tools.
func NewSearchable(tools []Item, in func(Item) bool) *Searchable {
	ids := make([]wirename.ID, len(tools))
	for i, it := range tools {
		h := it.Object.Head()
		ids[i] = wirename.ID{Namespace: h.Namespace(), Name: h.Metadata.Name, Full: it.FullName}
	}
	s := &Searchable{Tools: map[string]Item{}, wire: map[string]string{}}
	var entries []*search.Entry
	for i, name := range wirename.Names(ids) {
		if name != "" && in(tools[i]) {
			s.Tools[name], s.wire[tools[i].FullName] = tools[i], name
			entries = append(entries, search.Analyse(tools[i].Document(name)))
		}
	}
	s.Index = search.New(entries)
	return s
}

// Name returns the name in the index of a tool that a person names in any form that [Registry.Lookup] accepts.
func (s *Searchable) Name(r *Registry, namespace, name string) (string, error) {
	if _, ok := s.Tools[name]; ok {
		return name, nil
	}
	it, err := r.Lookup(namespace, name)
	if err != nil {
		return "", err
	}
	if s.wire[it.FullName] == "" {
		return "", fmt.Errorf("tool %q is not among the tools that are searched", name)
	}
	return s.wire[it.FullName], nil
}
