package console

import (
	"net/http"
	"net/url"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/registry"
)

// toolsetRow is a toolset with what the principal sees in it.
type toolsetRow struct {
	Namespace   string         `json:"namespace"`
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Path        string         `json:"path,omitempty"` // of its endpoint, if it is served
	Discovery   string         `json:"discovery"`      // list or search
	Tools       int            `json:"tools"`
	Pinned      int            `json:"pinned"`
	Prompts     []string       `json:"prompts,omitempty"`
	Tokens      int            `json:"tokens"` // of a list of all tools
	Ready       bool           `json:"ready"`
	Reasons     []v1.Violation `json:"reasons,omitempty"`
	Href        string         `json:"-"`
	// Only operators see the following fields.
	Principals []string `json:"principals,omitempty"`
	Groups     []string `json:"groups,omitempty"`
}

// toolsets returns the toolsets that a person may use. Operators see all.
func (c *Console) toolsets(r *request) []registry.Item {
	return slices.DeleteFunc(r.view.Toolsets(), func(it registry.Item) bool {
		return !c.operates(r.person) && (!it.Ready || !it.Object.(*v1.Toolset).Spec.Admits(r.principal, r.groups))
	})
}

// toolsetLink returns a row that only names a toolset.
func toolsetLink(it registry.Item) toolsetRow {
	h := it.Object.Head()
	return toolsetRow{Namespace: h.Namespace(), Name: h.Metadata.Name, Ready: it.Ready, Reasons: it.Reasons,
		Href: "toolsets/" + url.PathEscape(h.Namespace()) + "/" + url.PathEscape(h.Metadata.Name)}
}

func (c *Console) rowOfToolset(r *request, it registry.Item) (toolsetRow, gateway.Toolset) {
	row, t := toolsetLink(it), r.view.Toolset(it.Object.(*v1.Toolset))
	row.Description, row.Path, row.Tools, row.Pinned, row.Tokens, row.Discovery = t.Spec.Description, t.Path, t.Listed, t.Pinned, t.Tokens, v1.DiscoverySearch
	if t.Spec.Lists(t.Listed, t.Tokens) {
		row.Discovery = v1.DiscoveryList
	}
	for _, p := range t.Prompts {
		row.Prompts = append(row.Prompts, p.Name)
	}
	if c.operates(r.person) {
		row.Principals, row.Groups = t.Spec.Principals, t.Spec.Groups
	}
	return row, t
}

// toolset shows the tools of a toolset.
func (c *Console) toolset(r *request) error {
	for _, it := range c.toolsets(r) {
		if h := it.Object.Head(); h.Namespace() == r.PathValue("namespace") && h.Metadata.Name == r.PathValue("name") {
			row, t := c.rowOfToolset(r, it)
			p := listTools(r, t.Tools)
			p.Toolset = &row
			c.show(r, http.StatusOK, "tools", row.Name, "tools", p)
			return nil
		}
	}
	return &v1.NotFoundError{Kind: v1.KindToolset, Name: r.PathValue("name")}
}

func (c *Console) apiToolsets(r *request) (any, error) {
	var rows []toolsetRow
	for _, it := range c.toolsets(r) {
		row, _ := c.rowOfToolset(r, it)
		rows = append(rows, row)
	}
	return items(rows), nil
}
