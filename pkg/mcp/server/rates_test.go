package server_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/mcp/server"
)

func TestRateOfEachPrincipal(t *testing.T) {
	clock := &clock{now: time.Now()}
	e := listen(t, server.New(catalogOf(), server.Options{Admission: admission.New(admission.Limits{Rate: admission.Rate{PerSecond: 0.5, Burst: 2}, Now: clock.time})}), server.HTTPOptions{
		Tokens: tokens(t, "ann", "1", "ann", "2", "bob", "3"), Now: clock.time,
	})
	ask := func(token string) reply {
		headers := []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list"}
		if token != "" {
			headers = append(headers, "Authorization", "Bearer "+token)
		}
		res, _ := send(t, "POST", e.url+"/mcp", listModern, headers...)
		return res
	}
	for n, step := range []struct {
		token  string
		after  time.Duration
		status int
		wait   string
	}{
		{token: "1", status: 200}, {token: "2", status: 200}, // one principal, whatever its token
		{token: "1", status: 429, wait: "2"}, {token: "2", status: 429, wait: "2"},
		{token: "3", status: 200},
		{token: "1", after: time.Second, status: 429, wait: "1"}, // a refused request costs nothing
		{token: "1", after: time.Second, status: 200},
		{token: "1", status: 429, wait: "2"},
		{token: "wrong", status: 401}, {status: 401}, {token: "wrong", status: 429, wait: "2"}, // of one address
		{token: "3", status: 200},
	} {
		clock.add(step.after)
		if res := ask(step.token); res.StatusCode != step.status || res.Header.Get("Retry-After") != step.wait {
			t.Errorf("request %d: status %d, Retry-After %q; want %d, %q", n, res.StatusCode, res.Header.Get("Retry-After"), step.status, step.wait)
		}
	}
}

func TestRateOfAnAddress(t *testing.T) {
	clock := &clock{now: time.Now()}
	e := listen(t, server.New(catalogOf(), server.Options{Admission: admission.New(admission.Limits{Rate: admission.Rate{PerSecond: 1}, Now: clock.time})}), server.HTTPOptions{Now: clock.time})
	var mu sync.Mutex
	got := map[int]int{}
	var group sync.WaitGroup
	for n := range 30 {
		group.Go(func() {
			// A client gains nothing by choosing its own name.
			res, _ := send(t, "POST", e.url+"/mcp", listLegacy, "Mcp-Session-Id", strconv.Itoa(n), "X-Forwarded-For", fmt.Sprintf("10.0.0.%d", n))
			mu.Lock()
			defer mu.Unlock()
			got[res.StatusCode]++
		})
	}
	group.Wait()
	if got[404] != 10 || got[429] != 20 {
		t.Errorf("got %v, want 10 requests at once and 20 refused", got)
	}
	if res, _ := send(t, "GET", e.url+"/healthz", ""); res.StatusCode != 200 {
		t.Errorf("healthz: status %d", res.StatusCode)
	}
}
