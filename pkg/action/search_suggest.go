package action

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/redact"
	"toolctl.dev/toolctl/pkg/search"
	"toolctl.dev/toolctl/pkg/store"
)

// SuggestAsks lists the queries of find_tools that led to no call, from the audit log: candidates for the ask of
// spec.examples and for spec.keywords.
type SuggestAsks struct {
	*Config
	// Since is the time of the oldest query. Default: all queries.
	Since time.Time
}

// SuggestedAsk is a query that led to no call: its session went on with another query, or ended.
type SuggestedAsk struct {
	// Ask is the query with secrets masked, and with "…" for values such as addresses and paths.
	Ask   string    `json:"ask"`
	Times int       `json:"times"`
	Last  time.Time `json:"last"`
	// Then are the tools that the sessions called next, after a further query: likely what the query was about.
	Then []string `json:"then"`
}

// Run reads the audit log. The most frequent queries come first.
func (s *SuggestAsks) Run(ctx context.Context) ([]SuggestedAsk, error) {
	type conversation struct{ principal, session string }
	type asked struct {
		*SuggestedAsk
		at time.Time
	}
	all, open := map[string]*SuggestedAsk{}, map[conversation][]asked{}
	miss := func(queries []asked, then string) {
		for _, q := range queries {
			if q.Times++; q.at.After(q.Last) {
				q.Last = q.at
			}
			if then != "" && !slices.Contains(q.Then, then) {
				q.Then = append(q.Then, then)
			}
		}
	}
	err := s.withKept(ctx, "the audit is in the store, not in files", func(st store.Store) error {
		return st.EachAudit(ctx, store.AuditFilter{Since: s.Since, Settled: true}, func(line store.AuditLine) error {
			r, err := line.Record()
			if err != nil {
				return err
			}
			c := conversation{r.Principal, r.Session}
			switch query := foundBy(&r); {
			case query != "":
				key := strings.ToLower(query)
				if all[key] == nil {
					all[key] = &SuggestedAsk{Ask: query, Then: []string{}}
				}
				open[c] = append(open[c], asked{all[key], r.Time})
			case r.Change == nil && r.Namespace != "" && len(open[c]) > 0: // a call of a tool
				queries := open[c]
				miss(queries[:len(queries)-1], r.Tool)
				delete(open, c)
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	for _, queries := range open {
		miss(queries, "")
	}
	found := []SuggestedAsk{}
	for _, q := range all {
		if q.Times > 0 {
			slices.Sort(q.Then)
			found = append(found, *q)
		}
	}
	slices.SortFunc(found, func(a, b SuggestedAsk) int {
		return cmp.Or(cmp.Compare(b.Times, a.Times), b.Last.Compare(a.Last), strings.Compare(a.Ask, b.Ask))
	})
	return found, nil
}

// foundBy returns the query of a record about find_tools, and "" for other records and for a query without words.
func foundBy(r *v1.AuditRecord) string {
	var args struct{ Query string }
	if !r.IsSearch() || json.Unmarshal(r.Args, &args) != nil {
		return ""
	}
	return strings.Join(strings.Fields(search.WithoutValues(redact.Written(args.Query))), " ")
}
