package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"

	"github.com/rogpeppe/go-internal/testscript"
)

// weatherKey is the key that the weather API of the scripts requires.
const weatherKey = "k3y-that-must-not-show"

// serveWeather starts a small REST API for a script and sets API_URL to its address.
func serveWeather(e *testscript.Env) {
	var busy atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("POST /weather", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Authorization") != "Bearer "+weatherKey {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":"bad key","sent":%q}`, r.Header.Get("Authorization"))
			return
		}
		var in struct{ Location string }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		fmt.Fprintf(w, `{"location":%q,"temperature":21.5,"station_key":"internal"}`, in.Location)
	})
	mux.HandleFunc("GET /cities/{id}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":%q,"query":%q}`, r.PathValue("id"), r.URL.RawQuery)
	})
	mux.HandleFunc("GET /busy", func(w http.ResponseWriter, _ *http.Request) {
		if busy.Add(1)%3 != 0 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		io.WriteString(w, "at last")
	})
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusUnprocessableEntity)
		io.WriteString(w, `{"type":"about:blank","title":"Out of stock","detail":"no more of item 7","status":422}`)
	})
	mux.HandleFunc("POST /echo", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]string{"url": r.URL.String(), "header": r.Header.Get("X-A"), "body": string(body)})
	})
	mux.HandleFunc("GET /away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://metadata.invalid/latest/", http.StatusFound)
	})
	srv := httptest.NewServer(mux)
	e.Defer(srv.Close)
	e.Setenv("API_URL", srv.URL)
	e.Setenv("WEATHER_KEY", weatherKey)
}
