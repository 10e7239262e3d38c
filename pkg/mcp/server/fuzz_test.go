package server_test

import (
	"net/http"
	"strings"
	"testing"
	"unicode"

	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/mcp/server"
)

// FuzzHTTP sends arbitrary requests of both protocol versions to a listening server, with and without
// authentication. The server answers each with a status of the specification, lets no request in without a
// token, and keeps working.
func FuzzHTTP(f *testing.F) {
	open := listen(f, server.New(catalogOf(offer("", "do")), server.Options{Admission: admission.New(admission.Limits{MaxBody: 1 << 16})}), server.HTTPOptions{})
	key := rsaSigner(f, "r1")
	i := newIssuer(f, "/.well-known/oauth-authorization-server", key)
	guarded := listen(f, server.New(catalogOf(offer("", "do")), server.Options{Admission: admission.New(admission.Limits{MaxBody: 1 << 16})}), server.HTTPOptions{Tokens: tokens(f, "ann", "s3cret"), OAuth: oauthOf(i)})
	good := key.token(f, i.claims())
	signed := strings.Split(good, ".")
	bodies := []string{initialize, listLegacy, listModern, "", "{", "[]", `[{"jsonrpc":"2.0"}]`, `{"jsonrpc":"2.0","id":{},"method":1,"params":[]}`,
		`{"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, strings.Replace(listModern, "tools/list", "tools/call", 1)}
	authorizations := []string{"", "Bearer s3cret", "bearer  s3cret", "Bearer s3cret,", "Bearer", "Basic s3cret", "Bearer " + good, "Bearer " + signed[0] + "." + signed[1] + ".", "Bearer eyJhbGciOiJub25lIn0." + signed[1] + ".", "Bearer ....", "Bearer " + signed[0]}
	for n, method := range []string{"POST", "GET", "DELETE", "OPTIONS"} {
		for m, body := range bodies {
			f.Add(method, body, "2026-07-28", "tools/list", "", "", authorizations[(n+m)%len(authorizations)], "application/json, text/event-stream")
			f.Add(method, body, "", "", "http://evil.example", "x", "", "*/*")
		}
	}
	for _, a := range authorizations {
		f.Add("POST", listModern, "2026-07-28", "tools/list", "", "", a, "*/*")
		f.Add("POST", initialize, "2025-11-25", "", "", "", a, "text/html")
	}
	known := map[int]bool{200: true, 202: true, 204: true, 400: true, 401: true, 403: true, 404: true, 405: true, 406: true, 413: true, 415: true, 431: true, 503: true}
	f.Fuzz(func(t *testing.T, method, body, version, header, origin, session, authorization, accept string) {
		if header == "subscriptions/listen" || strings.Contains(body, "subscriptions") || strings.Contains(body, `\u`) {
			t.Skip("a stream stays open")
		}
		for _, e := range []*endpoint{open, guarded} {
			req, err := http.NewRequestWithContext(t.Context(), method, e.url+"/mcp", strings.NewReader(body))
			if err != nil || method == "CONNECT" {
				t.Skip()
			}
			req.Header.Set("Content-Type", "application/json")
			for name, value := range map[string]string{"Mcp-Protocol-Version": version, "Mcp-Method": header, "Origin": origin, "Mcp-Session-Id": session, "Authorization": authorization, "Accept": accept} {
				if strings.ContainsFunc(value, unicode.IsControl) {
					t.Skip("the client does not send it")
				}
				if value != "" {
					req.Header.Set(name, value)
				}
			}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if !known[res.StatusCode] {
				t.Errorf("%s %q: status %d", method, body, res.StatusCode)
			}
			_, token, _ := strings.Cut(strings.TrimSpace(authorization), " ")
			token = strings.TrimSpace(token)
			if e == guarded && res.StatusCode < 300 && method != "OPTIONS" && token != "s3cret" && token != good {
				t.Errorf("%s %q with %q: status %d without a token", method, body, authorization, res.StatusCode)
			}
		}
	})
}
