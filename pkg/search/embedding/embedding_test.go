package embedding_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"toolctl.dev/toolctl/pkg/search"
	"toolctl.dev/toolctl/pkg/search/embedding"
	"toolctl.dev/toolctl/pkg/store/memory"
)

// concepts are the dimensions of the model of the tests. It knows words that mean the same, as a real one does.
var concepts = [][]string{{"refund", "money back", "reimburse"}, {"weather", "umbrella", "rain"}, {"ticket", "issue", "bug"}}

// model is an endpoint in process.
type model struct {
	extra atomic.Int32 // more dimensions
	texts atomic.Int32 // that were embedded
	down  atomic.Bool  // it does not answer
	busy  atomic.Int32 // requests that wait
}

func (m *model) RoundTrip(r *http.Request) (*http.Response, error) {
	if m.down.Load() {
		m.busy.Add(1)
		defer m.busy.Add(-1)
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	var body struct{ Input []string }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return nil, err
	}
	m.texts.Add(int32(len(body.Input)))
	type datum struct {
		Index     int       `json:"index"`
		Embedding []float64 `json:"embedding"`
	}
	var data []datum
	for i, text := range slices.Backward(body.Input) { // the order of an answer does not matter
		v := make([]float64, len(concepts)+1+int(m.extra.Load()))
		v[len(concepts)] = 0.01
		for c, words := range concepts {
			for _, w := range words {
				if strings.Contains(strings.ToLower(text), w) {
					v[c] = 1
				}
			}
		}
		data = append(data, datum{i, v})
	}
	text, err := json.Marshal(map[string]any{"data": data})
	return answer(http.StatusOK, string(text)), err
}

func answer(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
}

func index(names ...string) *search.Index {
	var entries []*search.Entry
	for _, name := range names {
		entries = append(entries, search.Analyse(search.Document{Name: name, Description: "Does " + name}))
	}
	return search.New(entries)
}

func embedder(t *testing.T, o embedding.Options) *embedding.Embedder {
	t.Helper()
	if o.URL == "" {
		o.URL = "http://models.test"
	}
	e, err := embedding.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func embedded(t *testing.T, e *embedding.Embedder, names ...string) *embedding.Index {
	t.Helper()
	x := e.Index(index(names...))
	if err := x.Embed(t.Context()); err != nil {
		t.Fatal(err)
	}
	return x
}

func names(hits []search.Hit) (names []string) {
	for _, h := range hits {
		names = append(names, h.Name)
	}
	return names
}

// found searches and compares the names.
func found(t *testing.T, x *embedding.Index, query string, want ...string) {
	t.Helper()
	hits, err := x.Search(t.Context(), query, 2, nil)
	if err != nil {
		t.Error(err)
	}
	if got := names(hits); !slices.Equal(got, want) {
		t.Errorf("%q: got %q, want %q", query, got, want)
	}
}

func TestSearch(t *testing.T) {
	x := embedded(t, embedder(t, embedding.Options{Transport: &model{}}), "refund_order", "get_weather", "open_ticket")
	for query, want := range map[string]string{
		"I want my money back":       "refund_order", // no word of it
		"do I need an umbrella":      "get_weather",
		"refund":                     "refund_order",
		"there is a bug, open":       "open_ticket",
		strings.Repeat("rain ", 4e3): "get_weather",
	} {
		hits, err := x.Search(t.Context(), query, 3, nil)
		if err != nil || len(hits) == 0 || hits[0].Name != want || hits[0].Score <= 0 || hits[0].Score > 1 {
			t.Errorf("%.40q: %q, %v, want %s", query, names(hits), err, want)
		}
		one, err := x.Search(t.Context(), query, 1, nil)
		if err != nil || len(one) != 1 || one[0] != hits[0] {
			t.Errorf("%.40q: the first is %v, %v; with more it is %v", query, one, err, hits[0])
		}
	}
	if hits, _ := x.Search(t.Context(), "refund", 3, nil); hits[0].Score != 1 {
		t.Errorf("first in both ranks: %v, want 1", hits[0].Score)
	}
	hits, err := x.Search(t.Context(), "money back", 3, func(e *search.Entry) bool { return e.Name != "refund_order" })
	if err != nil || slices.Contains(names(hits), "refund_order") || len(hits) != 2 {
		t.Errorf("of two tools: %q, %v", names(hits), err)
	}
	found(t, x, " ", "get_weather", "open_ticket") // browsing
}

// What a search answers depends on the tools of its index alone, whatever other tools are embedded.
func TestSearchOfOneViewTellsNothingOfOthers(t *testing.T) {
	e := embedder(t, embedding.Options{Transport: &model{}})
	alone, err := embedded(t, e, "refund_order", "get_weather").Search(t.Context(), "money back in the rain", 5, nil)
	if err != nil {
		t.Fatal(err)
	}
	embedded(t, e, "refund_order", "refund_everything", "get_weather", "rain_money_back")
	again, err := embedded(t, e, "refund_order", "get_weather").Search(t.Context(), "money back in the rain", 5, nil)
	for i := range alone {
		if err != nil || len(alone) != len(again) || alone[i].Name != again[i].Name || alone[i].Score != again[i].Score {
			t.Fatalf("%v, then %v, %v", alone, again, err)
		}
	}
}

func TestVectorsAreKept(t *testing.T) {
	st := memory.New(memory.Options{})
	defer st.Close()
	for _, store := range []embedding.Store{st, nil} {
		m := &model{}
		ask := func(e *embedding.Embedder, want int32, tools ...string) {
			t.Helper()
			before := m.texts.Load()
			x := embedded(t, e, tools...)
			if got := m.texts.Load() - before; got != want {
				t.Errorf("%d texts were sent for %q, want %d", got, tools, want)
			}
			found(t, x, "money back", "refund_order", "get_weather")
		}
		e := embedder(t, embedding.Options{Transport: m, Store: store, Model: "one"})
		ask(e, 3, "refund_order", "get_weather") // one text shows the dimensions
		ask(e, 2, "refund_order", "get_weather", "open_ticket")
		if store != nil { // another process
			e = embedder(t, embedding.Options{Transport: m, Store: store, Model: "one"})
		}
		ask(e, 1, "refund_order", "get_weather", "open_ticket")
		m.extra.Store(2) // the endpoint has another model now
		ask(e, 3, "refund_order", "get_weather")
		m.extra.Store(0)
		ask(e, 1, "refund_order", "get_weather")
		if store != nil {
			ask(embedder(t, embedding.Options{Transport: m, Store: store, Model: "two"}), 3, "refund_order", "get_weather")
		}
	}
}

// brokenStore cannot keep anything.
type brokenStore struct{}

func (brokenStore) Vectors(context.Context, []string) (map[string][]byte, error) {
	return nil, errors.New("the disk is full")
}
func (brokenStore) PutVectors(context.Context, map[string][]byte) error {
	return errors.New("the disk is full")
}

func TestStoreFails(t *testing.T) {
	x := embedded(t, embedder(t, embedding.Options{Transport: &model{}, Store: brokenStore{}}), "refund_order", "get_weather")
	found(t, x, "money back", "refund_order", "get_weather")
}

// Over HTTP: the request is that of OpenAI, in batches that every server takes.
func TestRequest(t *testing.T) {
	var sizes []int
	var many []string
	for i := range 70 {
		many = append(many, fmt.Sprintf("tool_%02d", i))
	}
	for path, want := range map[string]string{"": "/v1/embeddings", "/": "/v1/embeddings", "/v1": "/v1/embeddings", "/api/v3/embeddings?version=1": "/api/v3/embeddings?version=1"} {
		sizes = nil
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var body map[string]any
			_ = json.NewDecoder(r.Body).Decode(&body)
			texts, _ := body["input"].([]any)
			sizes = append(sizes, len(texts))
			if r.URL.String() != want || r.Method != http.MethodPost || r.Header.Get("Authorization") != "Bearer s3cret" || r.Header.Get("Content-Type") != "application/json" || body["model"] != "nomic" || len(body) != 2 {
				t.Errorf("%s %s, %v, %v", r.Method, r.URL, r.Header, body)
			}
			fmt.Fprint(w, `{"data": [`)
			for i, text := range texts {
				if s, _ := text.(string); s == "" || len(s) > 1500 {
					t.Errorf("a text of %d bytes", len(s))
				}
				fmt.Fprintf(w, `%s{"index": %d, "object": "embedding", "embedding": [0.5, -1e-3]}`, []string{"", ","}[min(i, 1)], i)
			}
			fmt.Fprint(w, `], "model": "nomic", "usage": {"total_tokens": 7}}`)
		}))
		e := embedder(t, embedding.Options{URL: srv.URL + path, Model: "nomic", Key: "s3cret"})
		long := search.Document{Name: "long", Description: strings.Repeat("ü", 5000)}
		x := e.Index(search.New(append(slices.Clone(index(many...).Entries()), search.Analyse(long))))
		if err := x.Embed(t.Context()); err != nil {
			t.Error(err)
		}
		srv.Close()
		if !reflect.DeepEqual(sizes, []int{1, 32, 32, 7}) {
			t.Errorf("%s: batches of %d", path, sizes)
		}
	}
}

// Whatever an endpoint answers, only its rank is lost.
func TestBrokenAnswers(t *testing.T) {
	const good = `{"index": 0, "embedding": [1, 2]}`
	vectors := func(data ...string) string { return `{"data": [` + strings.Join(data, ",") + `]}` }
	for _, c := range []struct {
		status int
		body   string
		want   string
	}{
		{200, vectors(), "0 vectors for 1 text"},
		{200, vectors(good, good), "2 vectors for 1 text"},
		{200, vectors(`{"index": 1, "embedding": [1, 2]}`), "text 1"},
		{200, vectors(`{"index": -1, "embedding": [1, 2]}`), "text -1"},
		{200, vectors(`{"index": 0, "embedding": []}`), "0 dimensions"},
		{200, vectors(`{"index": 0, "embedding": [` + strings.Repeat("1,", 10_000) + `1]}`), "10001 dimensions"},
		{200, vectors(`{"index": 0, "embedding": [NaN, 1]}`), "cannot be read"},
		{200, vectors(`{"index": 0, "embedding": [1e300, 1]}`), "cannot be read"},
		{200, vectors(`{"index": 0, "embedding": [0, 0]}`), "zeros"},
		{200, vectors(`{"index": 0, "embedding": "AACAPw=="}`), "cannot be read"},
		{200, `{"error": "no such model"}`, "0 vectors for 1 text"},
		{200, `<html>`, "cannot be read"},
		{200, `{"data": [` + strings.Repeat(" ", 17<<20) + good + `]}`, "too large"},
		{302, `elsewhere`, "status 302"},
		{401, `{"error": {"message": "wrong key s3cret"}}`, `status 401: {"error": {"message": "wrong key ***"}}`},
		{404, `{"error": {"message": "model \"x\" not found"}}`, "not found"},
	} {
		var log bytes.Buffer
		var works atomic.Bool
		m := &model{}
		e := embedder(t, embedding.Options{
			URL: "http://user:p4ss@models.test/v1/embeddings?key=hidden", Key: "s3cret", Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				if works.Load() {
					return m.RoundTrip(r)
				}
				if r.URL.Host != "models.test" {
					t.Errorf("a request to %s", r.URL)
				}
				resp := answer(c.status, c.body)
				resp.Header.Set("Location", "http://elsewhere.test/")
				return resp, nil
			}),
		})
		err := e.Index(index("refund_order")).Embed(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "the endpoint of embeddings at models.test: ") {
			t.Errorf("%.80s: %v, want %q", c.body, err, c.want)
		}
		for _, secret := range []string{"s3cret", "p4ss", "hidden"} {
			if strings.Contains(fmt.Sprint(err, log.String()), secret) {
				t.Errorf("%v, and %s", err, log.String())
			}
		}
		works.Store(true)
		x := embedded(t, e, "refund_order", "get_weather")
		works.Store(false)
		hits, err := x.Search(t.Context(), "refund", 5, nil)
		if got := names(hits); err == nil || !slices.Equal(got, []string{"refund_order"}) {
			t.Errorf("%.80s: found %q by words, %v", c.body, got, err)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Vectors of one answer must agree, and those of the tools with that of the query.
func TestDimensionsDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &model{}
		for _, second := range []string{`{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1, 2]}`, `{"index": 0, "embedding": [1, 2]}, {"index": 1, "embedding": [1, 2]}`} {
			answers := []string{`{"data": [{"index": 0, "embedding": [1]}]}`, `{"data": [` + second + `]}`}
			e := embedder(t, embedding.Options{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
				defer func() { answers = answers[1:] }()
				return answer(200, answers[0]), nil
			})})
			if err := e.Index(index("a", "b")).Embed(t.Context()); err == nil || !strings.Contains(err.Error(), "dimensions") {
				t.Errorf("vectors of 1 and 2 dimensions were taken: %v", err)
			}
		}
		e := embedder(t, embedding.Options{Transport: m})
		x := embedded(t, e, "refund_order", "get_weather")
		m.extra.Store(3)
		hits, err := x.Search(t.Context(), "refund or umbrella", 5, nil)
		if err == nil || !slices.Equal(names(hits), []string{"refund_order"}) {
			t.Errorf("with another model: %q, %v", names(hits), err)
		}
		run(t, e)
		synctest.Wait()
		found(t, x, "refund or umbrella", "refund_order", "get_weather")
	})
}

// run runs an embedder until the test ends.
func run(t *testing.T, e *embedding.Embedder) {
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { e.Run(ctx) })
	t.Cleanup(func() { cancel(); done.Wait() })
}

// A server embeds the tools that searches use. While that lasts, and while the endpoint does not answer, words decide within
// 300 ms, and the log says so once.
func TestEndpointFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		m := &model{}
		e := embedder(t, embedding.Options{Transport: m, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		run(t, e)
		x := e.Index(index("refund_order", "get_weather"))
		found(t, x, "refund or umbrella", "refund_order", "get_weather") // embedded within 300 ms

		takes := func(want time.Duration) {
			t.Helper()
			began := time.Now()
			hits, err := x.Search(t.Context(), "refund or umbrella", 5, nil)
			if err == nil || !slices.Equal(names(hits), []string{"refund_order"}) || time.Since(began) != want {
				t.Errorf("got %q, %v after %s, want words alone after %s", names(hits), err, time.Since(began), want)
			}
		}
		m.down.Store(true)
		takes(300 * time.Millisecond)
		takes(0) // it is left alone
		for range 3 {
			time.Sleep(31 * time.Second)
			takes(300 * time.Millisecond)
			takes(0)
		}
		time.Sleep(31 * time.Second)
		var all sync.WaitGroup
		for range 5 { // one of them tries again
			all.Go(func() { _, _ = x.Search(t.Context(), "refund", 5, nil) })
		}
		synctest.Wait()
		if n := m.busy.Load(); n != 1 {
			t.Errorf("%d queries are at the endpoint, want 1", n)
		}
		all.Wait()
		m.down.Store(false)
		time.Sleep(31 * time.Second)
		found(t, x, "refund or umbrella", "refund_order", "get_weather")
		if n, again := strings.Count(log.String(), "fails"), strings.Count(log.String(), "works again"); n != 1 || again != 1 || !strings.Contains(log.String(), "within 300ms") {
			t.Errorf("the log:\n%s", log.String())
		}

		// The tools are embedded when the endpoint works again.
		m.down.Store(true)
		x = e.Index(index("refund_order", "get_weather", "open_ticket"))
		for _, want := range []time.Duration{300 * time.Millisecond, 0} { // only the first one waits
			began := time.Now()
			found(t, x, "refund or umbrella", "refund_order")
			if got := time.Since(began); got != want {
				t.Errorf("words alone after %s, want %s", got, want)
			}
		}
		time.Sleep(10 * time.Minute)
		m.down.Store(false)
		found(t, x, "refund or umbrella", "refund_order", "get_weather")
	})
}

// A caller who gives up says nothing of the endpoint, and the queries at the endpoint are bounded.
func TestManySearches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		m := &model{}
		e := embedder(t, embedding.Options{Transport: m, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		x := embedded(t, e, "refund_order", "get_weather")
		m.down.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if hits, err := x.Search(ctx, "refund", 5, nil); err == nil || len(hits) != 1 {
					t.Errorf("got %q, %v", names(hits), err)
				}
			})
		}
		synctest.Wait()
		if n := m.busy.Load(); n != 16 {
			t.Errorf("%d queries are at the endpoint, want 16", n)
		}
		cancel()
		all.Wait()
		m.down.Store(false)
		found(t, x, "refund or umbrella", "refund_order", "get_weather")
		if log.Len() > 0 {
			t.Errorf("the log:\n%s", log.String())
		}
	})
}

func TestNewRefuses(t *testing.T) {
	for _, url := range []string{"", "localhost:11434", "ftp://models.test", "http://", "http://%zz"} {
		if _, err := embedding.New(embedding.Options{URL: url}); err == nil || !strings.Contains(err.Error(), "http://localhost:11434/v1/embeddings") {
			t.Errorf("%q: %v", url, err)
		}
	}
}
