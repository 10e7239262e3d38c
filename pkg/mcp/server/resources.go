package server

import (
	"context"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
)

// ResourceSource is a [Library] with resources of its own, beside those of MCP servers.
type ResourceSource interface {
	// Resources returns what can be read now. It does not wait.
	Resources() []Resource
	// ReadOwn reads a resource of an owner.
	ReadOwn(ctx context.Context, owner v1.Key, uri string) ([]v1.Part, error)
}

// Resource is one resource of a [ResourceSource]. An MCP server that lists its address
// too does not get it.
type Resource struct {
	// Owner is the manifest that declares it; not an MCPServer.
	Owner v1.Key
	mcp.Resource
}

// resourcesOf returns the resources that a catalog has itself.
func resourcesOf(c Catalog) []Resource {
	if source, ok := c.(ResourceSource); ok {
		return source.Resources()
	}
	return nil
}

// read asks whoever has the resource for it.
func read(ctx context.Context, lib Library, owner v1.Key, uri string) ([]v1.Part, error) {
	if source, ok := lib.(ResourceSource); ok && owner.Kind != v1.KindMCPServer {
		return source.ReadOwn(ctx, owner, uri)
	}
	return lib.ReadResource(ctx, owner, uri)
}
