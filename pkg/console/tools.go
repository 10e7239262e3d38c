package console

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/rollout"
)

// toolRow is a tool in a list.
type toolRow struct {
	FullName    string            `json:"full_name"`
	Namespace   string            `json:"namespace"`
	Name        string            `json:"name"`
	Title       string            `json:"title,omitempty"`
	Description string            `json:"description"`
	Labels      map[string]string `json:"labels,omitempty"`
	Mode        string            `json:"mode"`
	Ready       bool              `json:"ready"`
	Reason      string            `json:"reason,omitempty"`
	Server      string            `json:"server,omitempty"`
	// Blocked is the policy that refuses every call.
	Blocked string `json:"blocked_by,omitempty"`
	// Policies are the policies with a rule that applies to calls of the tool. Held reports whether one of these policies
	// holds each call for approval.
	Policies []string `json:"policies,omitempty"`
	Held     bool     `json:"needs_approval,omitempty"`
	Href     string   `json:"-"`
}

func rowOf(view gateway.View, it registry.Item) toolRow {
	t := it.Tool()
	namespace, name, _ := strings.Cut(it.FullName, "/")
	r := toolRow{
		FullName: it.FullName, Namespace: namespace, Name: name, Description: t.Spec.Description, Labels: t.Metadata.Labels, Mode: t.Mode(), Ready: it.Ready, Reason: it.Reason(),
		Server: it.Server.Name, Href: "tools/" + url.PathEscape(namespace) + "/" + url.PathEscape(name),
	}
	if h := t.Spec.Hints; h != nil {
		r.Title = h.Title
	}
	r.Policies, r.Held = view.Concerned(it)
	if b := view.Blocked(it); b != nil {
		r.Blocked = b.Policy
	}
	return r
}

// toolsPage is a page of the list of tools.
type toolsPage struct {
	listPage[registry.Item]
	Tools    []toolRow
	Toolsets []toolsetRow // links
	Toolset  *toolsetRow  // of which these are the tools; nil for all tools
}

func listTools(r *request, all []registry.Item) toolsPage {
	p := toolsPage{listPage: listOf(r.Request, "", all, []column[registry.Item]{
		{name: "name", title: "Name", given: true, text: func(it *registry.Item) string { return it.FullName }},
		{name: "state", title: "State", chosen: true, choices: []string{stateReady, stateHeld, stateBlocked, stateNotReady}, text: func(it *registry.Item) string {
			switch {
			case !it.Ready:
				return stateNotReady
			case r.view.Blocked(*it) != nil:
				return stateBlocked
			}
			if _, held := r.view.Concerned(*it); held {
				return stateHeld
			}
			return stateReady
		}},
		{name: "description", title: "Description", class: "wide", text: func(it *registry.Item) string {
			if h := it.Tool().Spec.Hints; h != nil && h.Title != "" {
				return h.Title + " " + it.Tool().Spec.Description
			}
			return it.Tool().Spec.Description
		}},
		{name: "labels", title: "Labels", text: func(it *registry.Item) string { return labelText(it.Tool().Metadata.Labels) }},
		{name: "namespace", title: "Namespace", class: "none", chosen: true, text: func(it *registry.Item) string { return it.Tool().Namespace() }},
		{name: "mode", title: "Mode", chosen: true, text: func(it *registry.Item) string { return it.Tool().Mode() }},
		{name: "policies", title: "Policies"},
		{title: "Call", class: "act"},
	})}
	for _, it := range p.Rows {
		p.Tools = append(p.Tools, rowOf(r.view, *it))
	}
	return p
}

// labelText returns labels as text, sorted by key.
func labelText(labels map[string]string) string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		all = append(all, k+"="+labels[k])
	}
	return strings.Join(all, " ")
}

// States of tools and servers, for filters.
const (
	stateReady    = "ready"
	stateNotReady = "not-ready"
	stateBlocked  = "blocked"
	stateHeld     = "needs-approval"
)

func (c *Console) tools(r *request) error {
	p := listTools(r, r.view.Tools())
	for _, it := range c.toolsets(r) {
		p.Toolsets = append(p.Toolsets, toolsetLink(it))
	}
	c.show(r, http.StatusOK, "tools", "Tools", "tools", p)
	return nil
}

// toolPage shows the details of a tool.
type toolPage struct {
	toolRow
	Reasons  []v1.Violation
	Origin   originView
	Input    schemaDoc
	Output   *schemaDoc
	Explain  *policy.Explanation
	Problem  string
	Hints    []string
	Examples []v1.ToolExample
	Hour     *chart
	Day      *chart
}

// find returns the tool that a request names.
func (c *Console) find(r *request) (registry.Item, error) {
	return r.view.Tool(r.PathValue("namespace") + "/" + r.PathValue("name"))
}

func (c *Console) tool(r *request) error {
	it, err := c.find(r)
	if err != nil {
		return err
	}
	p := c.toolPage(r, it)
	c.show(r, http.StatusOK, "tool", p.Name, "tools", p)
	return nil
}

func (c *Console) toolPage(r *request, it registry.Item) toolPage {
	t := it.Tool()
	p := toolPage{toolRow: rowOf(r.view, it), Reasons: it.Reasons, Input: documented(t.Spec.InputSchema), Examples: t.ExampleCalls()}
	if len(t.Spec.OutputSchema) > 0 {
		out := documented(t.Spec.OutputSchema)
		p.Output = &out
	}
	p.Origin = c.originOf(r, it)
	if h := t.Spec.Hints; h != nil {
		for _, one := range []struct {
			is   *bool
			text string
		}{{h.ReadOnly, "read only"}, {h.Destructive, "destructive"}, {h.Idempotent, "idempotent"}, {h.OpenWorld, "open world"}} {
			if one.is != nil && *one.is {
				p.Hints = append(p.Hints, one.text)
			}
		}
	}
	if it.Ready {
		if ex, err := c.explain(r, v1.Call{Tool: it.FullName, Session: r.id}); err != nil {
			p.Problem = err.Error()
		} else {
			p.Explain = &ex
		}
	}
	p.Hour, p.Day = c.feed.charts(it.Tool().Namespace(), it.Tool().Metadata.Name)
	return p
}

// originView is the origin of a tool.
type originView struct {
	Manifest string `json:"manifest,omitempty"`
	Commit   string `json:"commit,omitempty"`
	Set      string `json:"set,omitempty"`
	Revision int64  `json:"revision,omitempty"`
	Server   string `json:"server,omitempty"`
	Remote   string `json:"remote,omitempty"` // name of the tool on the server
	Lock     string `json:"lock,omitempty"`
	Drifted  bool   `json:"drifted,omitempty"`
	Problem  string `json:"problem,omitempty"`
}

func (c *Console) originOf(r *request, it registry.Item) originView {
	o, err := r.view.Origin(r.Context(), it)
	v := originView{Commit: o.Commit, Revision: o.Revision, Remote: o.Remote, Lock: o.Lock, Drifted: o.Drifted}
	if err != nil {
		v.Problem = err.Error()
	}
	if !o.Source.IsZero() {
		v.Manifest = o.Source.String()
	}
	if o.Set != "" {
		v.Set = rollout.Name(o.Set)
	}
	if o.Server.Name != "" {
		v.Server = o.Server.Namespace + "/" + o.Server.Name
	}
	return v
}

// indented returns JSON with indentation.
func indented(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil || len(raw) > maxIndented {
		return string(raw)
	}
	var b strings.Builder
	writeJSON(&b, raw)
	return b.String()
}

const maxIndented = 256 << 10
