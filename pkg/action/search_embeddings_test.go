package action_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/search/embedding"
)

// A search with an endpoint of embeddings finds tools that share no word with the request; while it fails, a search goes
// on with the words, and an evaluation does not.
func TestSearchWithEmbeddings(t *testing.T) {
	var down atomic.Bool
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Input []string }
		if json.NewDecoder(r.Body).Decode(&body) != nil || r.Header.Get("Authorization") != "Bearer s3cret" {
			t.Errorf("not the expected request: %v", r.Header)
		}
		if down.Load() {
			http.Error(w, "the model is not loaded", http.StatusNotFound)
			return
		}
		type datum struct {
			Index     int       `json:"index"`
			Embedding []float64 `json:"embedding"`
		}
		var data []datum
		for i, text := range body.Input {
			v := []float64{0, 1}
			if strings.Contains(text, "refund") || strings.Contains(text, "money back") {
				v = []float64{1, 0}
			}
			data = append(data, datum{i, v})
		}
		if err := json.NewEncoder(w).Encode(map[string]any{"data": data}); err != nil {
			t.Error(err)
		}
	}))
	defer srv.Close()
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tool := func(name string) string {
		return "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: " + name + "}\nspec:\n  description: Does this.\n  input_schema: {type: object}\n  mock_result: {}\n---\n"
	}
	conf := &action.Config{Files: []string{write("tools.yaml", tool("refund-order")+tool("get-weather"))}, Embeddings: embedding.Options{URL: srv.URL}}
	conf.Gateway.Env = func(name string) (string, bool) { return "s3cret", name == action.EmbeddingsKeyVariable }
	asks := write("asks.jsonl", `{"ask": "give Ann her money back", "right": [["refund-order"]]}`)

	first := func() string {
		t.Helper()
		found, err := (&action.Search{Config: conf, Query: "give Ann her money back"}).Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			return ""
		}
		return found[0].Name
	}
	evaluate := func() (*action.SearchReport, error) {
		return (&action.EvaluateSearch{Search: action.Search{Config: conf}, File: asks}).Run(t.Context())
	}
	if got := first(); got != "refund-order" {
		t.Errorf("found %q", got)
	}
	if r, err := evaluate(); err != nil || r.Recall1 != 1 {
		t.Errorf("got %+v, %v, want recall@1 of 1", r, err)
	}
	down.Store(true)
	if got := first(); got != "" {
		t.Errorf("found %q without a word of it", got)
	}
	if _, err := evaluate(); err == nil || !strings.Contains(err.Error(), "the model is not loaded") {
		t.Errorf("got %v, want why nothing was measured", err)
	}
}
