package registry

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Discovery is what an MCPServer offers in addition to the declared manifests.
type Discovery struct {
	// Tools are the server's tools as manifests of mode mcp, in the server's namespace. A Tool manifest replaces a
	// discovered tool if it binds the same tool of the server or has the same name.
	Tools []*v1.Tool
	// Refused maps the names of tools on the server that must not be called to the reason. It also applies to Tool
	// manifests that bind such a tool. A call fails with the error.
	Refused map[string]error
	// Err says why the server is not ready; nil if it is. Tools are then the last known ones: they are listed as not
	// ready, and calls go to the executor, which knows when the server is back. A call of an unknown tool fails with
	// Err.
	Err error
}

// SetDiscovered replaces the discovered tools of a server. It does nothing if the MCPServer does not exist. Discovered
// tools are listed and called like declared ones, but [Registry.Objects] does not return them.
func (r *Registry) SetDiscovered(server v1.Key, d Discovery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.snap.Load()
	if e := old.byKey[server]; e == nil || e.object.Head().Kind != v1.KindMCPServer {
		return
	}
	next := maps.Clone(old.discovered)
	next[server] = &d
	r.swap(func(c *contents) { c.discovered = next })
}

// offered adds the tools of servers to a snapshot that already has all declared objects.
func (b *builder) offered() {
	if len(b.discovered) == 0 {
		return
	}
	bound := map[string]bool{} // the server tools that declared tools bind
	for _, e := range b.entries {
		if t, ok := e.object.(*v1.Tool); ok && callsServer(t) {
			bound[bindingOf(t)] = true
		}
	}
	for key, d := range b.discovered {
		for _, t := range d.Tools {
			if key.Namespace != t.Namespace() {
				continue // a server may offer tools only in its own namespace
			}
			if bound[bindingOf(t)] {
				continue
			}
			k := t.Key()
			if first := b.byKey[k]; first != nil && first.server == (v1.Key{}) {
				continue // a manifest of the same name replaces the tool
			}
			e := b.entry(t, t, key)
			b.byKey[k] = e // two servers may offer the same bare name: lookup finds both by name
			b.entries = append(b.entries, e)
		}
	}
	slices.SortStableFunc(b.entries, func(a, b *entry) int {
		if c := compareObjects(a.object, b.object); c != 0 {
			return c
		}
		return strings.Compare(a.server.Name, b.server.Name)
	})
}

// bindingOf returns the key of the server tool that a Tool of mode mcp calls.
func bindingOf(t *v1.Tool) string {
	return t.Namespace() + "\x00" + t.Spec.MCP.Server + "\x00" + t.RemoteName()
}

// serverError returns why the server whose name is a prefix of name is not ready. It is nil if no server matches or the
// server is ready. The tools of a server that is not ready are unknown, not absent.
func (s *snapshot) serverError(namespace, name string) error {
	for key, d := range s.discovered {
		if d.Err == nil || namespace != "" && key.Namespace != namespace {
			continue
		}
		local := strings.TrimPrefix(name, key.Namespace+"/")
		if NamesServer(local, key.Name) {
			return d.Err
		}
	}
	return nil
}

// NamesServer reports whether the name of a tool, without a namespace, begins with the name of an MCP server.
func NamesServer(tool, server string) bool {
	return strings.HasPrefix(tool, server+"__") || strings.HasPrefix(tool, server+".") || strings.HasPrefix(tool, v1.MCPPrefix+server+"__")
}

// reasonViolations turns the error that makes an object not ready into violations.
func reasonViolations(err error) []v1.Violation {
	var invalid *v1.ValidationError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &invalid) && len(invalid.Violations) > 0:
		return invalid.Violations
	}
	return []v1.Violation{{Message: fmt.Sprint(err)}}
}
