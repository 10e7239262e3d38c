package server_test

import (
	"net/http"
	"strings"
	"testing"

	"toolctl.dev/toolctl/pkg/mcp/server"
)

// FuzzHTTP sends foreign requests to a server that listens: it answers each with a
// status of the specification and goes on.
func FuzzHTTP(f *testing.F) {
	e := listen(f, server.New(catalogOf(offer("", "do")), server.Options{}), server.HTTPOptions{MaxBody: 1 << 16})
	for _, method := range []string{"POST", "GET", "DELETE", "OPTIONS"} {
		for _, body := range []string{initialize, listLegacy, listModern, "", "{", "[]", `[{"jsonrpc":"2.0"}]`, `{"jsonrpc":"2.0","id":{},"method":1,"params":[]}`, `{"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`} {
			f.Add(method, body, "2026-07-28", "tools/list", "", "")
			f.Add(method, body, "", "", "http://evil.example", "x")
		}
	}
	known := map[int]bool{200: true, 202: true, 204: true, 400: true, 403: true, 404: true, 405: true, 413: true, 415: true, 503: true}
	f.Fuzz(func(t *testing.T, method, body, version, header, origin, session string) {
		if header == "subscriptions/listen" || strings.Contains(body, "subscriptions/listen") {
			t.Skip("a stream stays open")
		}
		req, err := http.NewRequestWithContext(t.Context(), method, e.url+"/mcp", strings.NewReader(body))
		if err != nil || method == "CONNECT" {
			t.Skip()
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		for name, value := range map[string]string{"Mcp-Protocol-Version": version, "Mcp-Method": header, "Origin": origin, "Mcp-Session-Id": session} {
			if value != "" {
				req.Header.Set(name, value)
			}
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			if strings.Contains(err.Error(), "invalid header") || strings.Contains(err.Error(), "invalid method") {
				t.Skip()
			}
			t.Fatal(err)
		}
		res.Body.Close()
		if !known[res.StatusCode] {
			t.Errorf("%s %q: status %d", method, body, res.StatusCode)
		}
	})
}
