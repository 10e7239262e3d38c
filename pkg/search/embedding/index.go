package embedding

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"toolctl.dev/toolctl/pkg/search"
)

// Index ranks the tools of a [search.Index] by their words and by their vectors.
type Index struct {
	*search.Index
	embedder *Embedder
	vectors  atomic.Pointer[[]vector] // of the entries; nil until all are embedded
	queued   atomic.Bool              // in Embedder.wanted
	first    sync.Once
	embedded chan struct{} // closed when the vectors are there for the first time
}

// Index returns an index of the same tools. [Embedder.Run] embeds them at the first search, or [Index.Embed] at once.
func (e *Embedder) Index(ix *search.Index) *Index {
	return &Index{Index: ix, embedder: e, embedded: make(chan struct{})}
}

// Embed gets the vectors of all tools. Until it has succeeded, only the words decide.
func (x *Index) Embed(ctx context.Context) error {
	vectors, err := x.embed(ctx)
	if err == nil {
		x.vectors.Store(&vectors)
		x.first.Do(func() { close(x.embedded) })
	}
	x.embedder.note(ctx, err)
	return err
}

func (x *Index) embed(ctx context.Context) (vectors []vector, err error) {
	// The endpoint may have another model than it had when the vectors of the store were made.
	probe, err := x.embedder.endpoint.embed(ctx, batchTimeout, []string{"tools"})
	if err != nil {
		return nil, err
	}
	for part := range slices.Chunk(x.Entries(), batch) {
		texts := make([]string, len(part))
		for i, entry := range part {
			texts[i] = text(&entry.Document)
		}
		some, err := x.embedder.documents(ctx, len(probe[0].values), texts)
		if err != nil {
			return nil, err
		}
		vectors = append(vectors, some...)
	}
	return vectors, nil
}

// want has Embedder.Run embed the tools. The first search that wants it waits for as long as it would wait for the vector of
// its query, because the store may have the vectors already.
func (x *Index) want(ctx context.Context) {
	if x.queued.Swap(true) {
		return
	}
	select {
	case x.embedder.wanted <- x:
	default:
		x.queued.Store(false) // a later search tries again
		return
	}
	ctx, cancel := context.WithTimeout(ctx, x.embedder.opts.QueryTimeout)
	defer cancel()
	select {
	case <-x.embedded:
	case <-ctx.Done():
	}
}

const (
	// depth is how many tools of each rank count.
	depth = 100
	// flatness is the constant of reciprocal rank fusion. With 60, the first of one rank counts little more than the second,
	// so that two ranks which agree have precedence over one alone (Cormack, Clarke and Büttcher, SIGIR 2009).
	flatness = 60
)

var (
	errLeftAlone = errors.New("the endpoint of embeddings failed a short time ago")
	errBusy      = errors.New("too many searches wait for the endpoint of embeddings")
	errOther     = errors.New("the endpoint of embeddings has got another model: the tools are embedded again")
)

// Search is [search.Index.Search] with both ranks. A score is 1 for a tool that both have first. An error says why only
// the words decided; the tools are valid in any case.
func (x *Index) Search(ctx context.Context, query string, limit int, keep func(*search.Entry) bool) ([]search.Hit, error) {
	if strings.TrimSpace(query) == "" {
		return x.Index.Search(query, limit, keep), nil
	}
	hits := x.Index.Search(query, max(limit, depth), keep)
	near, err := x.nearest(ctx, query, max(limit, depth), keep)
	if len(near) > 0 {
		hits = fuse(hits, near)
	}
	return hits[:min(limit, len(hits))], err
}

// nearest returns the entries whose vectors are nearest to that of a query; none until the tools are embedded.
func (x *Index) nearest(ctx context.Context, query string, limit int, keep func(*search.Entry) bool) (near []search.Hit, err error) {
	if !x.embedder.ready() {
		return nil, errLeftAlone
	}
	if x.vectors.Load() == nil {
		x.want(ctx)
	}
	vectors := x.vectors.Load()
	if vectors == nil {
		return nil, nil
	}
	q, err := x.embedder.query(ctx, query)
	if err != nil {
		return nil, err
	}
	for i, entry := range x.Entries() {
		v := (*vectors)[i]
		if len(v.values) != len(q.values) {
			x.vectors.Store(nil)
			x.want(ctx)
			return nil, errOther
		}
		if keep == nil || keep(entry) {
			near = append(near, search.Hit{Entry: entry, Score: float64(dot(q, v)) / v.length})
		}
	}
	slices.SortStableFunc(near, byScore)
	return near[:min(limit, len(near))], nil
}

// byScore orders the best first.
func byScore(a, b search.Hit) int { return cmp.Compare(b.Score, a.Score) }

// fuse returns the tools of both ranks.
func fuse(words, near []search.Hit) []search.Hit {
	sums := map[*search.Entry]float64{}
	for _, rank := range [][]search.Hit{words, near} {
		for i, h := range rank {
			sums[h.Entry] += (flatness + 1) / float64(2*(flatness+1+i))
		}
	}
	hits := make([]search.Hit, 0, len(sums))
	for entry, sum := range sums {
		hits = append(hits, search.Hit{Entry: entry, Score: sum})
	}
	slices.SortFunc(hits, func(a, b search.Hit) int { return cmp.Or(byScore(a, b), strings.Compare(a.Name, b.Name)) })
	return hits
}
