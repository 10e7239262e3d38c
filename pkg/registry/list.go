package registry

import (
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/policy"
)

// Query selects the objects that [Registry.List] returns. The zero value selects all.
type Query struct {
	// Kind restricts the query to one kind, for example "Tool".
	Kind string
	// Namespace restricts the query to one namespace.
	Namespace string
	// Name is an exact name or a pattern with a trailing "*".
	Name string
	// Selector restricts the query by labels, in the syntax of Kubernetes: "team=pay,tier in (a,b),!old".
	Selector string
	// Limit is the maximum number of items in the page; 0 means no limit.
	Limit int
	// Offset is the number of items to skip.
	Offset int
}

// Page is one page of a list.
type Page struct {
	// Items are sorted by kind, namespace and name.
	Items []Item
	// Total is the number of matching items on all pages.
	Total int
}

// Item is an object of the registry and its state.
type Item struct {
	Object v1.Object
	// Ready says whether the object can be used.
	Ready bool
	// Reasons says why the object is not ready.
	Reasons []v1.Violation
	// Server is the MCPServer that offers the tool; it is zero for declared objects.
	Server v1.Key
	// Blocked is the policy error that every call of the tool gets; nil if some calls may pass. A blocked tool need not
	// be offered to a model.
	Blocked *v1.PolicyError
	// FullName is the unambiguous name of a tool: namespace/name, or namespace/server__tool for a tool of an MCP
	// server. It is empty for other kinds.
	FullName string
	// Subject is a tool, a prompt or an MCP server in the form in which policies and toolsets know it. It is zero for other
	// kinds.
	Subject policy.Subject

	chain *policy.Chain // of a tool, or of a prompt that was queried by its name
	owner *v1.MCPServer // of a tool that calls a server; nil for others
}

// Under evaluates the policies and an overlay, which may be nil, for a principal's calls of a tool, or of a prompt from
// [Registry.Get]. It returns the refusal that every call gets, or nil if some calls may pass, and whether a policy
// requires a model to call a tool.
func (i Item) Under(o *policy.Overlay, principal string) (blocked *v1.PolicyError, requires bool) {
	c := o.Over(i.chain)
	return c.BlockedFor(principal), c.Requires(principal)
}

// Audience returns the principals that can call a tool that policies block for others. It is nil if the principal makes
// no difference. The overlay applies too and may be nil.
func (i Item) Audience(o *policy.Overlay) *policy.Audience { return o.Over(i.chain).Audience() }

// Concerned returns the names of the policies with a rule that may affect a principal's calls of a tool, and whether a
// policy requires approval for each call. The overlay may be nil.
func (i Item) Concerned(o *policy.Overlay, principal string) (policies []string, held bool) {
	return o.Over(i.chain).Concerned(principal)
}

// Reason returns the first reason in one line, or "" if the item is ready.
func (i Item) Reason() string {
	if len(i.Reasons) == 0 {
		return ""
	}
	f := i.Reasons[0]
	if f.Path != "" {
		return v1.FieldPath(f.Path) + ": " + f.Message
	}
	return f.Message
}

// Tool returns the object as a Tool; nil if it has another kind.
func (i Item) Tool() *v1.Tool {
	t, _ := i.Object.(*v1.Tool)
	return t
}

func (e *entry) item() Item {
	reasons := slices.Concat(e.reasons(), reasonViolations(e.refused), reasonViolations(e.unready))
	if len(reasons) == 0 {
		reasons = e.unset()
	}
	it := Item{Object: e.object, Ready: len(reasons) == 0, Reasons: reasons, Server: e.server}
	switch o := e.object.(type) {
	case *v1.Tool:
		it.Blocked, it.FullName, it.chain = e.tool.chain.Blocked(), e.tool.fullName(), e.tool.chain
		it.Subject, it.owner = e.subject(o), e.calls
	case *v1.Prompt:
		it.Subject = promptSubject(o.Head())
	case *v1.MCPServer:
		it.Subject = policy.Subject{Namespace: o.Namespace(), Server: o.Metadata.Name, ServerLabels: o.Metadata.Labels}
	}
	return it
}

// names reports whether the query matches an object with this name.
func (q *Query) names(h *v1.Header) bool {
	if h.Kind == v1.KindTool {
		return v1.MatchTool(q.Name, h.Metadata.Name)
	}
	return v1.MatchPattern(q.Name, h.Metadata.Name)
}

// List returns the objects that match a query. It returns an error if the selector is malformed.
func (r *Registry) List(q Query) (Page, error) {
	sel, err := ParseSelector(q.Selector)
	if err != nil {
		return Page{}, err
	}
	var p Page
	for _, e := range r.snap.Load().entries {
		h := e.object.Head()
		if q.Kind != "" && h.Kind != q.Kind ||
			q.Namespace != "" && h.Namespace() != q.Namespace ||
			q.Name != "" && !q.names(h) ||
			!sel.Matches(h.Metadata.Labels) {
			continue
		}
		p.Total++
		if p.Total <= q.Offset || q.Limit > 0 && len(p.Items) >= q.Limit {
			continue
		}
		p.Items = append(p.Items, e.item())
	}
	return p, nil
}

// Objects returns every declared object, sorted by kind, namespace and name. The slice must not be changed.
func (r *Registry) Objects() []v1.Object {
	return r.snap.Load().objects
}

// declared returns the objects with each [GoTool] replaced by its Tool.
func declared(objects []v1.Object) []v1.Object {
	if !slices.ContainsFunc(objects, func(o v1.Object) bool { _, ok := o.(*GoTool); return ok }) {
		return objects
	}
	out := slices.Clone(objects)
	for i, o := range out {
		if g, ok := o.(*GoTool); ok {
			out[i] = &g.Tool
		}
	}
	return out
}
