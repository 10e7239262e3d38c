package gateway

import (
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/mcp/server"
	"toolctl.dev/toolctl/pkg/resources"
)

// ownResources returns the files that the manifests of the served tools and prompts declare.
func (c *catalog) ownResources(served server.Contents) []server.Resource {
	declared := resources.Of(c.reg.Objects())
	if len(declared) == 0 {
		return nil
	}
	owners := map[v1.Key]bool{}
	for _, o := range served.Tools {
		owners[o.Tool.Key()] = !o.Hidden
	}
	for _, p := range served.Prompts {
		owners[p.Key] = true
	}
	var all []server.Resource
	for i := range declared {
		if r := &declared[i]; owners[r.Owner] {
			all = append(all, server.Resource{Owner: r.Owner, Resource: ListedResource(r)})
		}
	}
	return all
}

// readOwn returns the content of a declared file as it was loaded.
func (c *catalog) readOwn(owner v1.Key, uri string) ([]v1.Part, error) {
	declared := resources.Of(c.reg.Objects())
	at := slices.IndexFunc(declared, func(r resources.Resource) bool { return r.Owner == owner && r.URI == uri })
	if at < 0 { // it went between the list and the request
		return nil, &v1.NotFoundError{Kind: "Resource", Name: uri}
	}
	return []v1.Part{declared[at].Contents()}, nil
}

// ListedResource is a declared file in the form of a list.
func ListedResource(r *resources.Resource) mcp.Resource {
	size := int64(len(r.Data))
	return mcp.Resource{URI: r.URI, Name: r.Name, Title: r.Title, Description: r.Description, MIMEType: r.MIMEType, Size: &size, Annotations: r.Annotations}
}
