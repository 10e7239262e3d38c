package registry

import (
	"cmp"
	"maps"

	v1 "toolctl.dev/toolctl/api/v1"
)

// SetDescriptions replaces the descriptions of tools from their manifests or MCP servers by texts. A key is the tool's
// namespace and its metadata.name, or server__tool for a tool of an MCP server; the kind is ignored. The texts also
// apply to later sets of objects, until the next SetDescriptions. [Registry.Objects] returns the manifests unchanged.
// SetDescriptions reports whether the texts differ from the previous ones.
func (r *Registry) SetDescriptions(texts map[v1.Key]string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := make(map[v1.Key]string, len(texts))
	for k, text := range texts {
		k.Kind = v1.KindTool
		k.Namespace = cmp.Or(k.Namespace, v1.DefaultNamespace)
		next[k] = text
	}
	if maps.Equal(next, r.snap.Load().descriptions) {
		return false
	}
	r.swap(func(c *contents) { c.descriptions = next })
	return true
}
