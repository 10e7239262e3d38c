package gateway

import (
	"context"
	"runtime/debug"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/parallel"
	"toolctl.dev/toolctl/pkg/mcp/server"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/search"
	"toolctl.dev/toolctl/pkg/search/embedding"
)

// toolSearch searches tools for the clients of the server.
type toolSearch struct {
	reg        *registry.Registry
	library    *search.Library
	embeddings *embedding.Embedder // nil without an endpoint
}

func newToolSearch(reg *registry.Registry, e *embedding.Embedder) *toolSearch {
	f := &toolSearch{reg, search.NewLibrary(server.MaxIndexed), e}
	f.library.Whole = e != nil
	return f
}

func (f *toolSearch) Index(tools []server.Candidate) server.Index {
	known := map[string]registry.Item{}
	if page, err := f.reg.List(registry.Query{Kind: v1.KindTool}); err == nil {
		for _, it := range page.Items {
			known[it.FullName] = it
		}
	}
	docs := make([]search.Document, len(tools))
	parallel.Each(len(tools), func(i int) {
		t := &tools[i]
		if it, ok := known[t.Name]; ok {
			docs[i] = it.Document(t.ClientName)
		} else { // removed just now
			docs[i] = search.DocumentOf(t.ClientName, t.Tool, nil)
		}
	})
	ix := f.library.Index(docs)
	const many = 5000
	if len(docs) >= many {
		debug.FreeOSMemory() // the texts that were read took several times the memory of the index
	}
	if f.embeddings == nil {
		return toolIndex(func(_ context.Context, query string, limit int, keep func(*search.Entry) bool) ([]search.Hit, error) {
			return ix.Search(query, limit, keep), nil
		})
	}
	return toolIndex(f.embeddings.Index(ix).Search)
}

func (f *toolSearch) Found(ctx context.Context, call v1.Call, took time.Duration) {
	f.reg.AuditSearch(ctx, call, took)
}

// toolIndex is [embedding.Index.Search] or one by words alone.
type toolIndex func(ctx context.Context, query string, limit int, keep func(*search.Entry) bool) ([]search.Hit, error)

func (x toolIndex) Search(ctx context.Context, q server.Query) (hits []server.Hit) {
	keep := func(e *search.Entry) bool {
		for k, v := range q.Labels {
			if got, ok := e.Labels[k]; !ok || got != v {
				return false
			}
		}
		return q.Server == "" || e.Server == q.Server
	}
	found, _ := x(ctx, q.Text, q.Limit, keep) // without the endpoint of embeddings, words decide, and the log says so
	for _, h := range found {
		hits = append(hits, server.Hit{Name: h.Name, Score: h.Score})
	}
	return hits
}
