package action

import (
	"context"
	"log/slog"

	"toolctl.dev/toolctl/pkg/search"
	"toolctl.dev/toolctl/pkg/search/embedding"
	"toolctl.dev/toolctl/pkg/store"
)

// EmbeddingsKeyVariable is the environment variable with the key of the endpoint of embeddings.
const EmbeddingsKeyVariable = "TOOLCTL_EMBEDDINGS_KEY"

// embedder returns nil if there is no endpoint of embeddings.
func (c *Config) embedder(st store.Store, log *slog.Logger) (*embedding.Embedder, error) {
	o := c.Embeddings
	if o.URL == "" && o.Model != "" {
		return nil, usagef("--embeddings-model needs --embeddings-url")
	} else if o.URL == "" {
		return nil, nil
	}
	o.Logger = log
	o.Key, _ = c.env(EmbeddingsKeyVariable)
	if st != nil {
		o.Store = st
	}
	e, err := embedding.New(o)
	if err != nil {
		return nil, usagef("--embeddings-url: %w", err)
	}
	return e, nil
}

// finder finds the tools of an index.
type finder func(query string, limit int, keep func(*search.Entry) bool) ([]search.Hit, error)

// finder returns the search of an index, with the rank of the embeddings if there is an endpoint. Its errors, and those of
// the search, say why only the words decide.
func (w *Workspace) finder(ctx context.Context, ix *search.Index) (finder, error) {
	if w.embeddings == nil {
		return func(query string, limit int, keep func(*search.Entry) bool) ([]search.Hit, error) {
			return ix.Search(query, limit, keep), nil
		}, nil
	}
	x := w.embeddings.Index(ix)
	return func(query string, limit int, keep func(*search.Entry) bool) ([]search.Hit, error) {
		return x.Search(ctx, query, limit, keep)
	}, x.Embed(ctx)
}
