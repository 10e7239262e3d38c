package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/until"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/mcp/server"
	"toolctl.dev/toolctl/pkg/search/embedding"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/memory"
)

// Clients find tools by their meaning once these are embedded, and only those that they see; the model reads nothing of
// a server that nobody searches. After a reload only what is new is sent.
func TestSearchByMeaning(t *testing.T) {
	var mu sync.Mutex
	var texts []string
	var down atomic.Bool
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Input []string }
		if json.NewDecoder(r.Body).Decode(&body) != nil || down.Load() {
			http.Error(w, "out of memory", http.StatusBadRequest)
			return
		}
		mu.Lock()
		texts = append(texts, body.Input...)
		mu.Unlock()
		type datum struct {
			Index     int       `json:"index"`
			Embedding []float64 `json:"embedding"`
		}
		var data []datum
		for i, text := range body.Input {
			v := []float64{0, 1}
			if strings.Contains(text, "Refund") || strings.Contains(text, "reimburse") {
				v = []float64{1, 0}
			}
			data = append(data, datum{i, v})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	defer model.Close()
	sent := func() []string {
		mu.Lock()
		defer mu.Unlock()
		all := texts
		texts = nil
		return all
	}
	st := memory.New(memory.Options{})
	t.Cleanup(func() { st.Close() })
	e, err := embedding.New(embedding.Options{URL: model.URL, Store: store.Store(st)})
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, gateway.Options{Store: st, Embeddings: e, Server: server.Options{Discovery: v1.DiscoveryAuto}}, shop("money back"), shopPolicies)
	ann, bob := s.client(t, "/mcp", "ann", versions[0], nil), s.client(t, "/mcp", "bob", versions[0], nil)
	if all := sent(); all != nil {
		t.Errorf("the model has read %q before a search", all)
	}
	query := map[string]any{"query": "reimburse Ann", "limit": 1}
	finds := func() error {
		if got := find(t, ann, query); !slices.Equal(got, []string{"refund-order"}) {
			return fmt.Errorf("ann found %q", got)
		}
		return nil
	}
	until.NoError(t, finds)
	for range 20 { // while the tools that bob sees are embedded, and after that
		if got := find(t, bob, query); slices.Contains(got, "refund-order") {
			t.Errorf("bob found %q", got)
		}
	}
	sent()
	s.reload(t, shop("money back"), shopPolicies, tool("one-more", "1"))
	until.NoError(t, finds)
	var tools []string
	for _, text := range sent() {
		if text != "tools" && text != query["query"] {
			tools = append(tools, text)
		}
	}
	if len(tools) != 1 || !strings.HasPrefix(tools[0], "one more") {
		t.Errorf("after a reload the model read %q", tools)
	}
	down.Store(true)
	if got := find(t, ann, map[string]any{"query": "refund", "limit": 1}); !slices.Equal(got, []string{"refund-order"}) {
		t.Errorf("without the endpoint, ann found %q", got)
	}
}
