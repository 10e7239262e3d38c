package lint

import (
	"slices"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/search"
)

// maxListed is the number of tools at which the most generous clients stop.
const maxListed = 128

// member is an object that a toolset may contain.
type member struct {
	kind    string
	subject policy.Subject
}

func (s *surface) members() []member {
	var all []member
	for _, t := range s.tools {
		all = append(all, member{v1.KindTool, t.subject})
	}
	for _, server := range s.servers {
		all = append(all, member{v1.KindMCPServer, policy.Subject{Namespace: server.Namespace(), Server: server.Metadata.Name, ServerLabels: server.Metadata.Labels}})
	}
	for _, o := range s.objects {
		if h := o.Head(); h.Kind == v1.KindPrompt {
			all = append(all, member{v1.KindPrompt, policy.Subject{Namespace: h.Namespace(), Name: h.Metadata.Name, Labels: h.Metadata.Labels}})
		}
	}
	return all
}

// unknown reports whether a server of the namespace may offer more than is known. The lock holds no prompts.
func (s *surface) unknown(kind, namespace string) bool {
	switch kind {
	case v1.KindMCPServer:
		return false
	case v1.KindTool:
		return s.open[namespace]
	}
	return slices.ContainsFunc(s.servers, func(m *v1.MCPServer) bool { return m.Namespace() == namespace })
}

func toolsetsWithoutMatch(s *surface, found func(Finding)) {
	members := s.members()
	for _, t := range s.toolsets {
		own := t.Namespace()
		check := func(path, kind, what string, names []string, matches func(string, member) bool) {
			for i, n := range names {
				namespace, _, full := strings.Cut(n, "/")
				if !full {
					namespace = own
				}
				of := func(m member) bool { return m.kind == kind && m.subject.Namespace == namespace }
				if n == "*" || s.unknown(kind, namespace) || slices.ContainsFunc(members, func(m member) bool { return of(m) && matches(n, m) }) {
					continue
				}
				var known []string
				for _, m := range members {
					if of(m) {
						known = append(known, m.subject.Name+m.subject.Server)
					}
				}
				f := at(t.Head(), v1.Pointer(path, strconv.Itoa(i)), "no %s in namespace %s matches %q", what, namespace, n)
				f.Message += v1.DidYouMean(n, known)
				found(f)
			}
		}
		entries := func(path string, all []v1.ToolsetMatch, matches func(string, *v1.ToolsetMatch, string, policy.Subject) bool) {
			for i, m := range all {
				at := v1.Pointer(path, strconv.Itoa(i))
				check(at+"/tools", v1.KindTool, "tool", m.Tools, func(n string, o member) bool {
					return matches(own, &v1.ToolsetMatch{Tools: []string{n}}, o.kind, o.subject)
				})
				check(at+"/prompts", v1.KindPrompt, "prompt", m.Prompts, func(n string, o member) bool {
					return matches(own, &v1.ToolsetMatch{Prompts: []string{n}}, o.kind, o.subject)
				})
				check(at+"/servers", v1.KindMCPServer, "MCP server", m.Servers, func(n string, o member) bool {
					return matches(own, &v1.ToolsetMatch{Servers: []string{n}}, o.kind, o.subject)
				})
			}
		}
		entries("/spec/include", t.Spec.Include, search.Includes)
		entries("/spec/exclude", t.Spec.Exclude, search.Excludes)
		check("/spec/pinned", v1.KindTool, "tool of the toolset", t.Spec.Pinned, func(n string, o member) bool {
			one := *t
			one.Spec.Pinned = []string{n}
			return search.Pins(&one, o.subject) && search.Contains(t, o.kind, o.subject)
		})
	}
}

func emptyToolsets(s *surface, found func(Finding)) {
	for _, t := range s.toolsets {
		open := s.open[t.Namespace()] && t.Spec.Include == nil
		for _, m := range t.Spec.Include {
			open = open || s.open[t.Namespace()] && len(m.Tools)+len(m.Prompts) == 0
			for _, n := range slices.Concat(m.Tools, m.Servers, m.Prompts) {
				namespace, _, full := strings.Cut(n, "/")
				open = open || s.open[namespace] && full || s.open[t.Namespace()] && !full
			}
		}
		in := func(m member) bool {
			return m.kind != v1.KindMCPServer && search.Contains(t, m.kind, m.subject)
		}
		if !open && !slices.ContainsFunc(s.members(), in) {
			found(at(t.Head(), "/spec", "no tool and no prompt of these manifests is in it"))
		}
	}
}

func longToolsets(s *surface, found func(Finding)) {
	for _, t := range s.toolsets {
		tools, tokens := 0, 0
		for _, tool := range s.offered() {
			if search.Contains(t, v1.KindTool, tool.subject) {
				tools, tokens = tools+1, tokens+tool.cost()
			}
		}
		if tools > maxListed && t.Spec.Lists(tools, tokens) {
			found(at(t.Head(), "/spec/discovery", "clients list all of its %d tools, which cost a model about %d tokens", tools, tokens))
		}
	}
}
