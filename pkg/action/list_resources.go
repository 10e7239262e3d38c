package action

import (
	"context"
	"encoding/json"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/mcp"
)

// ListResources lists the resources that manifests declare, and the resources and resource templates of MCP servers.
type ListResources struct {
	*Config
	// Selector chooses the manifests and servers by their labels. Default: all.
	Selector string
}

// Resource is a resource that [ListResources] found.
type Resource struct {
	Namespace   string          `json:"namespace"`
	Server      string          `json:"server,omitempty"`
	URI         string          `json:"uri,omitempty"`
	URITemplate string          `json:"uri_template,omitempty"`
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	MIMEType    string          `json:"mime_type,omitempty"`
	Size        *int64          `json:"size,omitempty"`
	Annotations json.RawMessage `json:"annotations,omitempty"`
	// Manifest declares the resource, as KIND/NAME; it is empty for resources of servers.
	Manifest string `json:"manifest,omitempty"`
}

// Run returns the resources, and the states of the servers that it queried.
func (l *ListResources) Run(ctx context.Context) (list []Resource, states []mcp.ServerState, err error) {
	has, err := Labeled(l.Selector)
	if err != nil {
		return nil, nil, err
	}
	list = []Resource{}
	err = l.within(ctx, func(w *Workspace) error {
		owners := map[v1.Key]bool{}
		for _, obj := range w.Registry.Objects() {
			owners[obj.Head().Key()] = has(obj)
		}
		for _, r := range w.Resources(l.Namespace) {
			if owners[r.Owner] {
				f := gateway.ListedResource(&r)
				list = append(list, Resource{r.Owner.Namespace, "", f.URI, "", f.Name, f.Title, f.Description, f.MIMEType, f.Size, f.Annotations, ObjectName(r.Owner)})
			}
		}
		if keys := slices.DeleteFunc(w.Servers(l.Namespace), func(k v1.Key) bool { return !owners[k] }); len(keys) > 0 {
			states = w.Discover(ctx, keys...)
		}
		for _, s := range states {
			for _, r := range s.Resources {
				list = append(list, Resource{s.Key.Namespace, s.Key.Name, r.URI, "", r.Name, r.Title, r.Description, r.MIMEType, r.Size, r.Annotations, ""})
			}
			for _, r := range s.ResourceTemplates {
				list = append(list, Resource{s.Key.Namespace, s.Key.Name, "", r.URITemplate, r.Name, r.Title, r.Description, r.MIMEType, nil, r.Annotations, ""})
			}
		}
		return nil
	})
	return list, states, err
}
