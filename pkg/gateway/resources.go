package gateway

import (
	"context"
	"slices"

	"github.com/yosida95/uritemplate/v3"

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

// readOwn returns the loaded content of a declared file.
func (c *catalog) readOwn(owner v1.Key, uri string) ([]v1.Part, error) {
	declared := resources.Of(c.reg.Objects())
	at := slices.IndexFunc(declared, func(r resources.Resource) bool { return r.Owner == owner && r.URI == uri })
	if at < 0 { // removed between the list and the request
		return nil, &v1.NotFoundError{Kind: "Resource", Name: uri}
	}
	return []v1.Part{declared[at].Contents()}, nil
}

// ListedResource returns a declared file in the form of a resource list.
func ListedResource(r *resources.Resource) mcp.Resource {
	size := int64(len(r.Data))
	return mcp.Resource{URI: r.URI, Name: r.Name, Title: r.Title, Description: r.Description, MIMEType: r.MIMEType, Size: &size, Annotations: r.Annotations}
}

// Resources returns the files that the manifests of a namespace declare; "" means all namespaces.
func (g *Gateway) Resources(namespace string) []resources.Resource {
	return slices.DeleteFunc(resources.Of(g.reg.Objects()), func(r resources.Resource) bool { return namespace != "" && r.Owner.Namespace != namespace })
}

// ReadResource reads a resource. If a server is given, it reads from that MCP server. If not, it reads a file that a
// manifest of the namespace declares, or else from the server that lists the resource or has a matching template. The
// error is a [v1.NotFoundError], says that several servers have the resource, or says why a server that may have it is
// not ready.
func (g *Gateway) ReadResource(ctx context.Context, namespace, server, uri string) ([]v1.Part, error) {
	if server != "" {
		it, err := g.reg.Get(v1.KindMCPServer, namespace, server)
		if err != nil {
			return nil, err
		}
		return g.servers.ReadResource(ctx, it.Object.Head().Key(), uri)
	}
	for _, r := range g.Resources(namespace) {
		if r.URI == uri {
			return []v1.Part{r.Contents()}, nil
		}
	}
	key, err := g.serverOfResource(ctx, namespace, uri)
	if err != nil {
		return nil, err
	}
	return g.servers.ReadResource(ctx, key, uri)
}

// serverOfResource returns the server of a resource.
func (g *Gateway) serverOfResource(ctx context.Context, namespace, uri string) (v1.Key, error) {
	states := g.mayHave(ctx, namespace, "")
	missing := &v1.NotFoundError{Kind: "Resource", Name: uri}
	var uris []string
	for _, r := range g.Resources(namespace) {
		uris = append(uris, r.URI)
	}
	for _, fits := range []func(mcp.ServerState) bool{
		func(s mcp.ServerState) bool {
			return slices.ContainsFunc(s.Resources, func(r mcp.Resource) bool { uris = append(uris, r.URI); return r.URI == uri })
		},
		func(s mcp.ServerState) bool {
			return slices.ContainsFunc(s.ResourceTemplates, func(r mcp.ResourceTemplate) bool { return fitsTemplate(r.URITemplate, uri) })
		},
	} {
		var found []v1.Key
		for _, s := range states {
			if fits(s) {
				found = append(found, s.Key)
			}
		}
		if len(found) == 1 {
			return found[0], nil
		}
		for _, k := range found {
			missing.Ambiguous = true
			missing.Candidates = append(missing.Candidates, k.Namespace+"/"+k.Name)
		}
		if missing.Ambiguous {
			return v1.Key{}, missing
		}
	}
	for _, s := range states {
		if !s.Ready { // this server may have it
			return v1.Key{}, s.Failure()
		}
	}
	if near := v1.Nearest(uri, uris); near != "" {
		missing.Candidates = []string{near}
	}
	return v1.Key{}, missing
}

// fitsTemplate reports whether a URI may match a URI template (RFC 6570) of a server.
func fitsTemplate(template, uri string) bool {
	const longest = 2048 // because a template becomes a regular expression
	if len(template) > longest || len(uri) > longest {
		return false
	}
	t, err := uritemplate.New(template)
	return err == nil && t.Match(uri) != nil
}
