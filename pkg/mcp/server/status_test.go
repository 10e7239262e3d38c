package server_test

import (
	"strings"
	"testing"
	"time"

	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/mcp/server"
)

// A request with one error gets the same status in both protocol versions, as defined by the MCP
// specification (transports, authorization), RFC 6750 or RFC 9110.
func TestStatusOfWhatIsWrong(t *testing.T) {
	key := rsaSigner(t, "r1")
	i := newIssuer(t, "/.well-known/oauth-authorization-server", key)
	clock := &clock{now: time.Now()}
	limits := admission.Limits{MaxBody: 1000, Rate: admission.Rate{PerSecond: 0.001, Burst: 1000}, Now: clock.time}
	e := listen(t, server.New(catalogOf(offer("", "one")), server.Options{Admission: admission.New(limits)}), server.HTTPOptions{
		OAuth: oauthOf(i), Tokens: tokens(t, "ann", "s3cret", "slow", "s10w"), Now: clock.time,
		AllowedOrigins: []string{"http://localhost:6274"},
	})
	drained := listen(t, server.New(catalogOf(), server.Options{Admission: admission.New(admission.Limits{Rate: admission.Rate{PerSecond: 0.001, Burst: 1}, Now: clock.time})}), server.HTTPOptions{Now: clock.time})
	send(t, "POST", drained.url+"/mcp", initialize)

	res, _ := send(t, "POST", e.url+"/mcp", initialize, "Authorization", "Bearer s3cret")
	session := res.Header.Get("Mcp-Session-Id")
	bases := map[string]struct {
		body    string
		headers []string
	}{
		"initialize":   {initialize, nil},
		"in a session": {listLegacy, []string{"Mcp-Session-Id", session, "Mcp-Protocol-Version", "2025-11-25"}},
		"modern":       {listModern, []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list"}},
	}
	for _, tc := range []struct {
		name    string
		on      *endpoint // default: e
		method  string    // default: POST
		path    string    // default: /mcp
		headers []string  // in place of the valid headers
		body    func(string) string
		status  int
		only    string // the base; default: all
		says    string
	}{
		{name: "nothing", status: 200},
		{name: "no token", headers: []string{"Authorization", ""}, status: 401},
		{name: "a wrong token", headers: []string{"Authorization", "Bearer wrong"}, status: 401},
		{name: "a token in the query", path: "/mcp?access_token=s3cret", headers: []string{"Authorization", ""}, status: 401},
		{name: "a malformed token", headers: []string{"Authorization", "Bearer a b"}, status: 400},
		{name: "a token without the scope", headers: []string{"Authorization", "Bearer " + key.token(t, i.claims("scope", ""))}, status: 403},
		{name: "an expired token", headers: []string{"Authorization", "Bearer " + key.token(t, i.claims("exp", 1))}, status: 401},
		{name: "another's session", headers: []string{"Authorization", "Bearer s10w"}, status: 403, only: "in a session"},
		{name: "another origin", headers: []string{"Origin", "https://evil.example"}, status: 403},
		{name: "another host", headers: []string{"Host", "evil.example"}, status: 403},
		{name: "another path", path: "/other", status: 404},
		{name: "a session that ended", headers: []string{"Mcp-Session-Id", "gone"}, status: 404, only: "in a session"},
		{name: "another method", method: "PATCH", status: 405},
		{name: "GET without sessions", method: "GET", status: 405, only: "modern"},
		{name: "DELETE without sessions", method: "DELETE", status: 405, only: "modern"},
		{name: "no JSON wanted", headers: []string{"Accept", "text/event-stream"}, status: 406},
		{name: "no stream wanted", headers: []string{"Accept", "application/json, text/event-stream;q=0"}, status: 406},
		{name: "everything wanted", headers: []string{"Accept", "*/*"}, status: 200},
		{name: "too large", body: func(s string) string { return s + strings.Repeat(" ", 1000) }, status: 413},
		{name: "no JSON sent", headers: []string{"Content-Type", "text/plain"}, status: 415},
		{name: "headers that are too large", headers: []string{"X-Large", strings.Repeat("x", 80<<10)}, status: 431},
		{name: "no JSON", body: func(string) string { return "{" }, status: 400},
		{name: "a batch", body: func(s string) string { return "[" + s + "]" }, status: 400},
		{name: "nothing sent", body: func(string) string { return "" }, status: 400},
		{name: "a version that never was", headers: []string{"Mcp-Protocol-Version", "2020-01-01"}, status: 400},
		{name: "a version that is not known", headers: []string{"Mcp-Protocol-Version", "2099-01-01"}, status: 400, only: "modern"},
		{name: "another version than the body's", headers: []string{"Mcp-Protocol-Version", "2025-11-25"}, status: 400, only: "modern"},
		{name: "another method than the body's", headers: []string{"Mcp-Method", "tools/call"}, status: 400, only: "modern", says: "-32020"},
		{name: "a method that is not known", headers: []string{"Mcp-Method", "tools/fly"}, body: func(s string) string { return strings.Replace(s, "tools/list", "tools/fly", 1) }, status: 404, only: "modern", says: "-32601"},
		{name: "too soon", on: drained, status: 429},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for base, right := range bases {
				if tc.only != "" && base != tc.only {
					continue
				}
				method, path, on, body := "POST", "/mcp", e, right.body
				if tc.method != "" {
					method = tc.method
				}
				if tc.path != "" {
					path = tc.path
				}
				if tc.on != nil {
					on = tc.on
				}
				if tc.body != nil {
					body = tc.body(body)
				}
				headers := append(append([]string{"Authorization", "Bearer s3cret"}, right.headers...), tc.headers...)
				res, got := send(t, method, on.url+path, body, headers...)
				if res.StatusCode != tc.status || !strings.Contains(got, tc.says) {
					t.Errorf("%s: status %d, want %d with %q: %s", base, res.StatusCode, tc.status, tc.says, got)
				}
				if said := res.Header.Get("WWW-Authenticate"); (said != "") != (res.StatusCode == 401 || tc.name == "a malformed token" || tc.name == "a token without the scope") {
					t.Errorf("%s: status %d, WWW-Authenticate %q", base, res.StatusCode, said)
				}
				if wait := res.Header.Get("Retry-After"); (wait != "") != (res.StatusCode == 429 || res.StatusCode == 503) {
					t.Errorf("%s: status %d, Retry-After %q", base, res.StatusCode, wait)
				}
				if strings.Contains(got, "s3cret") {
					t.Errorf("%s shows the token: %s", base, got)
				}
			}
		})
	}
}
