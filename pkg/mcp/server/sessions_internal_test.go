package server

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// A long call keeps its session alive.
func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pings := 0
		k := &httpSessions{fresh: time.Minute, all: map[string]*httpSession{}, sdk: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get(headerTouch) == "" || r.Header.Get(headerSession) != "s" || r.Method != http.MethodPost {
				t.Errorf("got %s %v", r.Method, r.Header)
			}
			pings++
		})}
		r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
		r.Header.Set(headerSession, "s")
		stop := k.keep(r)
		time.Sleep(3*time.Minute + time.Second)
		stop()
		if pings != 3 {
			t.Errorf("%d pings", pings)
		}
	})
}
