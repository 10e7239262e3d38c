package console

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/gateway"
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
	// Policies are those with a rule that matters to its calls; Held says that one of them holds
	// each call for approval.
	Policies []string `json:"policies,omitempty"`
	Held     bool     `json:"needs_approval,omitempty"`
	Href     string   `json:"-"`
}

func rowOf(view gateway.View, it gateway.Item) toolRow {
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

// toolQuery is what a list of tools is asked for.
type toolQuery struct {
	Text, Namespace, Mode, State string
	Page                         int
}

const (
	perPage  = 50
	maxQuery = 200
)

func readToolQuery(r *http.Request) toolQuery {
	q := r.URL.Query()
	n, _ := strconv.Atoi(q.Get("page"))
	text := q.Get("q")
	if len(text) > maxQuery {
		text = text[:maxQuery]
	}
	return toolQuery{Text: text, Namespace: q.Get("namespace"), Mode: q.Get("mode"), State: q.Get("state"), Page: max(1, n)}
}

// toolList is one page of the tools that a query chooses.
type toolList struct {
	Query         toolQuery
	Tools         []toolRow
	Total, Known  int
	Pages         int
	Namespaces    []string
	Modes         []string
	First, Last   int
	Before, After string // links to the pages beside this one; empty for none
}

func listTools(view gateway.View, q toolQuery) toolList {
	list := toolList{Query: q}
	namespaces, modes := map[string]bool{}, map[string]bool{}
	words := strings.Fields(strings.ToLower(q.Text))
	all := view.Tools()
	list.Known = len(all)
	var found []gateway.Item
	for _, it := range all {
		t := it.Tool()
		namespaces[t.Namespace()], modes[t.Mode()] = true, true
		if q.Namespace != "" && q.Namespace != t.Namespace() || q.Mode != "" && q.Mode != t.Mode() || !hasState(view, it, q.State) || !hasWords(it, words) {
			continue
		}
		found = append(found, it)
	}
	if len(words) > 0 { // a tool of that name comes before those that only speak of it
		inName := func(it gateway.Item) int {
			if strings.Contains(strings.ToLower(it.FullName), words[0]) {
				return 0
			}
			return 1
		}
		slices.SortStableFunc(found, func(a, b gateway.Item) int { return cmp.Compare(inName(a), inName(b)) })
	}
	list.Total = len(found)
	list.Pages = max(1, (list.Total+perPage-1)/perPage)
	list.Query.Page = min(q.Page, list.Pages)
	from := (list.Query.Page - 1) * perPage
	to := min(from+perPage, list.Total)
	for _, it := range found[from:to] {
		list.Tools = append(list.Tools, rowOf(view, it))
	}
	if list.First, list.Last = from+1, to; to == 0 {
		list.First = 0
	}
	list.Namespaces, list.Modes = sortedKeys(namespaces), sortedKeys(modes)
	if list.Query.Page > 1 {
		list.Before = list.Query.link(list.Query.Page - 1)
	}
	if list.Query.Page < list.Pages {
		list.After = list.Query.link(list.Query.Page + 1)
	}
	return list
}

func sortedKeys(m map[string]bool) []string {
	all := make([]string, 0, len(m))
	for k := range m {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}

// link is the list's page n.
func (q toolQuery) link(n int) string {
	v := url.Values{}
	for name, value := range map[string]string{"q": q.Text, "namespace": q.Namespace, "mode": q.Mode, "state": q.State} {
		if value != "" {
			v.Set(name, value)
		}
	}
	v.Set("page", strconv.Itoa(n))
	return "./?" + v.Encode()
}

// States of a tool by which a list is narrowed.
const (
	stateReady    = "ready"
	stateNotReady = "not-ready"
	stateBlocked  = "blocked"
)

func hasState(view gateway.View, it gateway.Item, state string) bool {
	switch state {
	case stateReady:
		return it.Ready && view.Blocked(it) == nil
	case stateNotReady:
		return !it.Ready
	case stateBlocked:
		return view.Blocked(it) != nil
	}
	return true
}

// hasWords reports whether each word is in the name, the description or the labels.
func hasWords(it gateway.Item, words []string) bool {
	if len(words) == 0 {
		return true
	}
	t := it.Tool()
	var b strings.Builder
	b.WriteString(it.FullName + "\n" + t.Spec.Description)
	if h := t.Spec.Hints; h != nil {
		b.WriteString("\n" + h.Title)
	}
	for k, v := range t.Metadata.Labels {
		b.WriteString("\n" + k + "=" + v)
	}
	text := strings.ToLower(b.String())
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}

func (c *Console) tools(r *request) error {
	list := listTools(r.view, readToolQuery(r.Request))
	c.show(r, http.StatusOK, "tools", "Tools", "tools", list)
	return nil
}

// toolPage is all that is known of one tool.
type toolPage struct {
	toolRow
	Reasons  []v1.Violation
	Origin   originView
	Input    schemaDoc
	Output   *schemaDoc
	Explain  *gateway.Explanation
	Problem  string
	Hints    []string
	Examples []v1.ToolExample
	Hour     *chart
	Day      *chart
}

// find returns the tool that a page is of.
func (c *Console) find(r *request) (gateway.Item, error) {
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

func (c *Console) toolPage(r *request, it gateway.Item) toolPage {
	t := it.Tool()
	p := toolPage{toolRow: rowOf(r.view, it), Reasons: it.Reasons, Input: documented(t.Spec.InputSchema), Examples: t.Spec.Examples}
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

// originView says where a tool comes from.
type originView struct {
	Manifest string `json:"manifest,omitempty"`
	Commit   string `json:"commit,omitempty"`
	Set      string `json:"set,omitempty"`
	Revision int64  `json:"revision,omitempty"`
	Server   string `json:"server,omitempty"`
	Remote   string `json:"remote,omitempty"` // its name on the server
	Lock     string `json:"lock,omitempty"`
	Drifted  bool   `json:"drifted,omitempty"`
	Problem  string `json:"problem,omitempty"`
}

func (c *Console) originOf(r *request, it gateway.Item) originView {
	o, err := r.view.Origin(r.Context(), it)
	v := originView{Commit: o.Commit, Revision: o.Revision, Remote: o.Remote, Lock: o.Lock, Drifted: o.Drifted}
	if err != nil {
		v.Problem = err.Error()
	}
	if !o.Source.IsZero() {
		v.Manifest = o.Source.String()
	}
	if o.Set != "" {
		v.Set = gateway.SetName(o.Set)
	}
	if o.Server.Name != "" {
		v.Server = o.Server.Namespace + "/" + o.Server.Name
	}
	return v
}

// indented is JSON as people read it.
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
