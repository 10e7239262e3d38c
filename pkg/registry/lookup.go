package registry

import (
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// lookup returns the tool that name matches. It tries namespace/name, name, server__tool, server.tool,
// mcp__server__tool and the bare name of a server tool, in this order; the last four may follow a namespace too. The
// first form that matches decides; if it matches two tools, the error lists both.
func (s *snapshot) lookup(namespace, name string) (*tool, error) {
	if ns, local, ok := strings.Cut(name, "/"); ok {
		if namespace != "" && namespace != ns {
			return nil, s.notFound(namespace, name)
		}
		if e := s.byKey[v1.Key{Kind: v1.KindTool, Namespace: ns, Name: local}]; e != nil && e.server == (v1.Key{}) {
			return e.tool, nil
		}
		return s.byName(ns, local, name)
	}
	return s.byName(namespace, name, name)
}

// byName returns the tool for a name without its namespace; asked is the name for error messages.
func (s *snapshot) byName(namespace, name, asked string) (*tool, error) {
	for _, rank := range [...]string{"", rankWire, rankDotted, rankMCP, rankBare} {
		found := s.names[rank+name]
		if namespace != "" {
			found = slices.DeleteFunc(slices.Clone(found), func(t *tool) bool { return t.spec.Namespace() != namespace })
		}
		switch len(found) {
		case 0:
		case 1:
			return found[0], nil
		default:
			err := &v1.NotFoundError{Kind: v1.KindTool, Name: asked, Ambiguous: true}
			for _, t := range found {
				err.Candidates = append(err.Candidates, t.fullName())
			}
			slices.Sort(err.Candidates)
			return nil, err
		}
	}
	return nil, s.notFound(namespace, asked)
}

// fullName returns the unambiguous name of the tool: namespace/name, or namespace/server__tool for a discovered tool,
// because another server may use the same name.
func (t *tool) fullName() string {
	if t.server != (v1.Key{}) {
		return t.spec.Namespace() + "/" + t.server.Name + "__" + t.spec.RemoteName()
	}
	return t.spec.Namespace() + "/" + t.spec.Metadata.Name
}

func (s *snapshot) notFound(namespace, name string) error {
	if err := s.serverError(namespace, name); err != nil {
		return err
	}
	err := &v1.NotFoundError{Kind: v1.KindTool, Name: name}
	local := name
	if _, after, ok := strings.Cut(name, "/"); ok {
		local = after
	}
	local = strings.TrimPrefix(local, v1.MCPPrefix)
	var names, elsewhere []string
	for _, e := range s.entries {
		if e.tool == nil {
			continue
		}
		n := e.object.Head().Metadata.Name
		if n == local {
			elsewhere = append(elsewhere, e.object.Head().Namespace()+"/"+n)
		}
		if namespace == "" || e.object.Head().Namespace() == namespace {
			names = append(names, n)
			if e.tool.spec.Spec.MCP != nil {
				names = append(names, e.tool.spec.RemoteName())
			}
		}
	}
	if len(elsewhere) > 0 {
		err.Candidates = elsewhere
	} else if near := v1.Nearest(local, names); near != "" {
		err.Candidates = []string{near}
	}
	return err
}

// Lookup returns the Tool that a call of name would reach, by the rules of [Registry.Execute]. The error is a
// [v1.NotFoundError].
func (r *Registry) Lookup(namespace, name string) (Item, error) {
	t, err := r.snap.Load().lookup(namespace, name)
	if err != nil {
		return Item{}, err
	}
	return t.item(), nil
}

// Get returns the object of a kind by name: namespace/name, or a name that is unique among the namespaces. An empty
// namespace means all. For tools it is the same as [Registry.Lookup]. The error is a [v1.NotFoundError].
func (r *Registry) Get(kind, namespace, name string) (Item, error) {
	if kind == v1.KindTool {
		return r.Lookup(namespace, name)
	}
	s := r.snap.Load()
	if ns, local, ok := strings.Cut(name, "/"); ok && (namespace == "" || namespace == ns) {
		namespace, name = ns, local
	}
	var found []*entry
	var names []string
	for _, e := range s.entries {
		h := e.object.Head()
		if h.Kind != kind || namespace != "" && h.Namespace() != namespace {
			continue
		}
		names = append(names, h.Metadata.Name)
		if h.Metadata.Name == name {
			found = append(found, e)
		}
	}
	err := &v1.NotFoundError{Kind: kind, Name: name}
	switch len(found) {
	case 1:
		it := found[0].item()
		if kind == v1.KindPrompt {
			it.chain = s.of(it.Object.Head().Namespace()).set.For(promptSubject(it.Object.Head()))
		}
		return it, nil
	case 0:
		if near := v1.Nearest(name, names); near != "" {
			err.Candidates = []string{near}
		}
	default:
		err.Ambiguous = true
		for _, e := range found {
			err.Candidates = append(err.Candidates, e.object.Head().Namespace()+"/"+name)
		}
	}
	return Item{}, err
}
