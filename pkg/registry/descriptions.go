package registry

import (
	"cmp"
	"maps"

	v1 "toolctl.dev/toolctl/api/v1"
)

// SetDescriptions makes texts the descriptions of tools, in place of those of their
// manifests or of the MCP servers that offer them. A key is the tool's namespace and
// its metadata.name, or server__tool for what a server offers; its kind does not matter.
// They hold for every later set of objects too, until they are set again.
// [Registry.Objects] returns the manifests as they are. It reports whether the texts are
// others than before.
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
