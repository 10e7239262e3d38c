// Package embedding ranks tools by a model of embeddings, and fuses that rank with the one of [search.Index]. The model is
// behind an HTTP endpoint of the form of OpenAI's /v1/embeddings, which Ollama, TEI, vLLM and others have too.
//
// The endpoint is an option: while it fails, or has not embedded the tools yet, the words alone decide. An [Index] ranks
// only the tools of its [search.Index], so it tells nothing of others.
package embedding

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/search"
)

// Options configure an [Embedder].
type Options struct {
	// URL is the address of the endpoint. If it has no path, or only /v1, the path is /v1/embeddings. Required.
	URL string
	// Model is the name of the model. Default: none is sent.
	Model string
	// Key is sent as bearer token. Default: none.
	Key string
	// Store keeps the vectors of tools. Default: they live as long as the Embedder.
	Store Store
	// QueryTimeout is how long a search waits for the vector of its query. Default: 300 ms.
	QueryTimeout time.Duration
	// Transport sends the requests. Default: http.DefaultTransport.
	Transport http.RoundTripper
	// Logger receives one message when the endpoint fails, and one when it works again. Default: no messages.
	Logger *slog.Logger
}

// Store is the part of a store that keeps vectors.
type Store interface {
	Vectors(ctx context.Context, keys []string) (map[string][]byte, error)
	PutVectors(ctx context.Context, vectors map[string][]byte) error
}

// memory is a Store that forgets everything when it is full.
type memory struct {
	mu      sync.Mutex
	vectors map[string][]byte
}

func (m *memory) Vectors(_ context.Context, keys []string) (map[string][]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := map[string][]byte{}
	for _, key := range keys {
		found[key] = m.vectors[key]
	}
	return found, nil
}

func (m *memory) PutVectors(_ context.Context, vectors map[string][]byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.vectors == nil || len(m.vectors)+len(vectors) > maxMemory {
		m.vectors = map[string][]byte{}
	}
	maps.Copy(m.vectors, vectors)
	return nil
}

const (
	// batch is the number of texts in a request. TEI refuses more than 32.
	batch        = 32
	batchTimeout = 2 * time.Minute // a model on a slow processor
	// maxText is the maximum length of a text in bytes: TEI and vLLM refuse texts that are longer than the model reads,
	// which is 512 tokens for small ones.
	maxText    = 1500
	maxQueries = 16     // that wait for the endpoint at once
	maxMemory  = 50_000 // vectors in a store in memory
	// pause is how long a failing endpoint is left alone.
	pause = 30 * time.Second
)

// Embedder gets vectors from an endpoint. It may be used by any number of goroutines.
type Embedder struct {
	opts     Options
	endpoint *endpoint
	queries  chan struct{} // one token for each query at the endpoint
	wanted   chan *Index   // to embed

	mu      sync.Mutex
	failing bool
	next    time.Time // when a failing endpoint is tried again
}

// New returns an Embedder. It sends no request.
func New(o Options) (*Embedder, error) {
	at, err := newEndpoint(o)
	if err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Store == nil {
		o.Store = &memory{}
	}
	o.QueryTimeout = cmp.Or(o.QueryTimeout, 300*time.Millisecond)
	return &Embedder{opts: o, endpoint: at, queries: make(chan struct{}, maxQueries), wanted: make(chan *Index, 64)}, nil
}

// Run embeds the tools of indexes that searches use, until ctx ends.
func (e *Embedder) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			e.endpoint.http.HTTPClient.CloseIdleConnections()
			return
		case x := <-e.wanted:
			_ = x.Embed(ctx) // the log has the error
			x.queued.Store(false)
		}
	}
}

// text is what the model reads of a tool, the most important first.
func text(d *search.Document) string {
	lines := []string{strings.NewReplacer("_", " ", "-", " ").Replace(d.Name), d.Title, d.Description, strings.Join(d.Asks, "\n"), d.Server + " " + d.ServerDescription}
	for _, p := range d.Parameters {
		lines = append(lines, p.Name+" "+p.Description)
	}
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.TrimSpace(line) == "" })
	return clip.Start(strings.Join(lines, "\n"), maxText)
}

// key identifies the vector of a text. With another number of dimensions it is of another model.
func (e *Embedder) key(dimensions int, text string) string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%q %d %s", cmp.Or(e.opts.Model, e.opts.URL), dimensions, text)))
}

// documents returns the vectors of at most batch texts, from the store or the endpoint.
func (e *Embedder) documents(ctx context.Context, dimensions int, texts []string) ([]vector, error) {
	keys, vectors := make([]string, len(texts)), make([]vector, len(texts))
	for i, t := range texts {
		keys[i] = e.key(dimensions, t)
	}
	stored, err := e.opts.Store.Vectors(ctx, keys)
	if err != nil { // the endpoint has them too
		e.opts.Logger.DebugContext(ctx, "vectors of tools were not read", "error", err.Error())
	}
	var left []int
	var asked []string
	for i, key := range keys {
		if vectors[i] = decode(stored[key]); len(stored[key]) != dimensions {
			left, asked = append(left, i), append(asked, texts[i])
		}
	}
	if len(left) == 0 {
		return vectors, nil
	}
	got, err := e.endpoint.embed(ctx, batchTimeout, asked)
	if err != nil {
		return nil, err
	}
	if n := len(got[0].values); n != dimensions {
		return nil, fmt.Errorf("the endpoint of embeddings returns vectors of %d and of %d dimensions", dimensions, n)
	}
	fresh := make(map[string][]byte, len(left))
	for i, at := range left {
		vectors[at], fresh[keys[at]] = got[i], got[i].encode()
	}
	if err := e.opts.Store.PutVectors(ctx, fresh); err != nil {
		e.opts.Logger.DebugContext(ctx, "vectors of tools were not stored", "error", err.Error())
	}
	return vectors, nil
}

// query returns the vector of a query.
func (e *Embedder) query(ctx context.Context, query string) (vector, error) {
	turn, cancel := context.WithTimeout(ctx, e.opts.QueryTimeout)
	defer cancel()
	select {
	case e.queries <- struct{}{}:
		defer func() { <-e.queries }()
	case <-turn.Done():
		return vector{}, errBusy
	}
	vectors, err := e.endpoint.embed(ctx, e.opts.QueryTimeout, []string{clip.Start(query, maxText)})
	e.note(ctx, err)
	if err != nil {
		return vector{}, err
	}
	return vectors[0], nil
}

// ready reports whether to use the endpoint. While it fails, that is so once in each pause.
func (e *Embedder) ready() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.failing {
		return true
	}
	now := time.Now()
	if now.Before(e.next) {
		return false
	}
	e.next = now.Add(pause)
	return true
}

// note records whether the endpoint works, unless the caller gave up.
func (e *Embedder) note(ctx context.Context, err error) {
	if err != nil && ctx.Err() != nil {
		return
	}
	e.mu.Lock()
	before := e.failing
	e.failing, e.next = err != nil, time.Now().Add(pause)
	e.mu.Unlock()
	switch {
	case err != nil && !before:
		e.opts.Logger.WarnContext(ctx, "the endpoint of embeddings fails: searches use words alone until it works", "error", err.Error())
	case err == nil && before:
		e.opts.Logger.InfoContext(ctx, "the endpoint of embeddings works again")
	}
}
