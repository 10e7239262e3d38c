package registry

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Discovery is what an MCPServer offers besides what manifests declare.
type Discovery struct {
	// Tools are the server's tools as manifests of mode mcp, in the server's namespace.
	// A Tool manifest that binds the same tool of the server takes the place of the
	// discovered one, and so does a Tool manifest of the same name.
	Tools []*v1.Tool
	// Refused says which tools must not be called and why, by the tool's name on the
	// server; a Tool manifest that binds one is refused too. A call fails with the error.
	Refused map[string]error
	// Err says why the server is not ready; nil when it is. Tools are then the last known
	// ones: they are listed as not ready, and calls go to the executor, which knows when
	// the server is back. A call of a tool that is not known fails with Err.
	Err error
}

// SetDiscovered replaces what is known of a server's tools. It changes nothing when
// there is no such MCPServer. What is discovered is listed and called like what is
// declared, and is no part of [Registry.Objects].
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

// offered adds the tools of servers to a snapshot whose objects are all there.
func (b *builder) offered() {
	if len(b.discovered) == 0 {
		return
	}
	bound := map[string]bool{} // what declared tools call
	for _, e := range b.entries {
		if t, ok := e.object.(*v1.Tool); ok && callsServer(t) {
			bound[bindingOf(t)] = true
		}
	}
	for key, d := range b.discovered {
		for _, t := range d.Tools {
			if key.Namespace != t.Namespace() {
				continue // only its own namespace is a server's to offer tools in
			}
			if bound[bindingOf(t)] {
				continue
			}
			k := t.Key()
			if first := b.byKey[k]; first != nil && first.server == (v1.Key{}) {
				continue // a manifest of the same name stands in for it
			}
			e := b.entry(t, t, key)
			b.byKey[k] = e // bare names of two servers may be equal: lookup finds both by name
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

// bindingOf identifies the tool of a server that a Tool of mode mcp calls.
func bindingOf(t *v1.Tool) string {
	return t.Namespace() + "\x00" + t.Spec.MCP.Server + "\x00" + t.RemoteName()
}

// serverError returns why the server that name begins with is not ready; nil when
// none does, or it is ready. Its tools are then unknown rather than absent.
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

// NamesServer reports whether the name of a tool, without a namespace, begins with that
// of an MCP server.
func NamesServer(tool, server string) bool {
	return strings.HasPrefix(tool, server+"__") || strings.HasPrefix(tool, server+".") || strings.HasPrefix(tool, v1.MCPPrefix+server+"__")
}

// reasonViolations turns an error that makes an object not ready into reasons.
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
