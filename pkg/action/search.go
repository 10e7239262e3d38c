package action

import (
	"cmp"
	"context"
	"maps"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/pkg/mcp/server"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/search"
)

// Search finds the tools that fit a request in plain words, as clients of "toolctl serve" find them.
type Search struct {
	*Config
	// Query is the request.
	Query string
	// Limit is the maximum number of tools. Default: 10.
	Limit int
	// Toolset is the toolset whose tools are searched, by its name or NAMESPACE/NAME. Default: all tools.
	Toolset string
	// Server and Selector choose among the tools, by the name of an MCPServer and by labels, which a tool has from its
	// server too. They change no score.
	Server, Selector string
	// Offline queries no MCP server.
	Offline bool
}

// queryTimeout is how long one search waits for the endpoint of embeddings: a person can wait longer than a client.
const queryTimeout = 30 * time.Second

// FoundTool is a tool that a [Search] found.
type FoundTool struct {
	Rank int `json:"rank"` // from 1
	// Name is the name by which MCP clients know the tool; Namespace and Tool are those of its manifest.
	Name        string         `json:"name"`
	Namespace   string         `json:"namespace"`
	Tool        string         `json:"tool"`
	Title       string         `json:"title,omitempty"`
	Description string         `json:"description"`
	Score       float64        `json:"score"`
	Matches     []search.Match `json:"matches"`
}

// Run finds tools, the best first.
func (s *Search) Run(ctx context.Context) (found []FoundTool, err error) {
	if strings.TrimSpace(s.Query) == "" {
		return nil, usagef("say in a few words what the tool should do")
	}
	if s.Limit == 0 {
		s.Limit = 10
	}
	s.Embeddings.QueryTimeout = queryTimeout
	err = s.within(ctx, func(w *Workspace) error {
		tools, err := s.tools(ctx, w)
		if err != nil {
			return err
		}
		find, _ := w.finder(ctx, tools.Index) // the log says why only the words decide
		hits, _ := find(s.Query, s.Limit, tools.keep)
		for i, hit := range hits {
			h := tools.Tools[hit.Name].Object.Head()
			found = append(found, FoundTool{i + 1, hit.Name, h.Namespace(), h.Metadata.Name, hit.Title, hit.Description, hit.Score, hit.Matches(s.Query)})
		}
		return nil
	})
	return found, err
}

// searched are the tools that are searched.
type searched struct {
	*registry.Searchable
	set  *v1.Toolset              // nil for all tools
	keep func(*search.Entry) bool // chooses among them
}

func (s *Search) tools(ctx context.Context, w *Workspace) (t searched, err error) {
	if s.Limit < 0 {
		return t, usagef("--limit %d: expected 1 or more", s.Limit)
	}
	labels, err := registry.ParseSelector(s.Selector)
	if err != nil {
		return t, usagef("-l: %w", err)
	}
	in := func(it registry.Item) bool { return it.Searched(nil) }
	if s.Toolset != "" {
		it, err := w.Registry.Get(v1.KindToolset, s.Namespace, s.Toolset)
		if err != nil {
			return t, err
		}
		set := it.Object.(*v1.Toolset)
		t.set, in = set, func(it registry.Item) bool { return it.Searched(nil) && search.Contains(set, v1.KindTool, it.Subject) }
	}
	if s.Server != "" {
		if _, err := w.Registry.Get(v1.KindMCPServer, s.Namespace, s.Server); err != nil {
			return t, err
		}
	}
	if !s.Offline {
		w.ask(ctx)
	}
	page, err := w.Registry.List(registry.Query{Kind: v1.KindTool, Namespace: s.Namespace})
	if err != nil {
		return t, err
	}
	t.Searchable = registry.NewSearchable(page.Items, in)
	t.keep = func(e *search.Entry) bool {
		return (s.Server == "" || e.Server == s.Server) && labels.Matches(e.Labels)
	}
	return t, nil
}

// pinned yields the tools that clients always see.
func (t searched) pinned(yield func(registry.Item) bool) {
	for _, it := range t.Tools {
		if t.set != nil && search.Pins(t.set, it.Subject) && !yield(it) {
			return
		}
	}
}

// EvaluateSearch measures how well a [Search] finds tools, on requests and the tools that are right for them. Limit and
// Query of the Search have no effect.
type EvaluateSearch struct {
	Search
	// File has a [search.Case] on each line.
	File string
}

// SearchReport is the result of an [EvaluateSearch].
type SearchReport struct {
	// Tools is the number of tools that are searched.
	Tools int `json:"tools"`
	// ListTokens is the size of a list of all these tools, and MenuTokens of what clients get in its place when they
	// search: the pinned tools of the toolset and two more. Both are at [v1.BytesPerToken].
	ListTokens int `json:"list_tokens"`
	MenuTokens int `json:"menu_tokens"`
	search.Report
}

// Run evaluates the search. The error lists each line of the file that is not a case.
func (e *EvaluateSearch) Run(ctx context.Context) (*SearchReport, error) {
	f, err := regular.Open(e.File)
	if err != nil {
		return nil, usagef("--eval %s: %w", e.File, regular.Reason(err))
	}
	defer f.Close()
	e.Embeddings.QueryTimeout = queryTimeout
	r := &SearchReport{}
	return r, e.within(ctx, func(w *Workspace) error {
		tools, err := e.tools(ctx, w)
		if err != nil {
			return err
		}
		cases, violations := search.ReadCases(f, e.File, func(name string) (string, error) { return tools.Name(w.Registry, e.Namespace, name) })
		if len(violations) > 0 {
			var text strings.Builder
			for _, v := range violations {
				text.WriteString("\n  " + v.String())
			}
			return invalidf("not every line is a request:%s", text.String())
		}
		if len(cases) == 0 {
			return invalidf("%s has no requests: expected lines of %s", e.File, search.CaseForm)
		}
		r.Tools, r.ListTokens = len(tools.Tools), w.ListSize(maps.Values(tools.Tools))/v1.BytesPerToken
		r.MenuTokens = (server.MenuSize() + w.ListSize(tools.pinned)) / v1.BytesPerToken
		find, err := w.finder(ctx, tools.Index)
		if err != nil {
			return err
		}
		var failed error // figures of the words alone would be taken for those of both ranks
		r.Report = search.Evaluate(cases, func(ask string, limit int) []string {
			hits, err := find(ask, limit, tools.keep)
			failed = cmp.Or(failed, err)
			names := make([]string, len(hits))
			for i, h := range hits {
				names[i] = h.Name
			}
			return names
		})
		return failed
	})
}
