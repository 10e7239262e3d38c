package server_test

import (
	"bytes"
	"strings"
	"testing"

	"toolctl.dev/toolctl/pkg/mcp/server"
)

// Clients of versions before 2025-06-18 may send several messages in a batch, and get the responses in one.
func TestBatches(t *testing.T) {
	const (
		ping  = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
		call  = `{"jsonrpc":"2.0","id":"2","method":"tools/call","params":{"name":"one"}}`
		other = `{"jsonrpc":"2.0","id":3,"method":"no/such"}`
		note  = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}`
		all   = "[" + ping + ",\n" + note + "," + call + "," + other + "]"
	)
	old := strings.Replace(initialize, "2025-11-25", "2025-03-26", 1)
	e := listen(t, server.New(catalogOf(offer("", "one")), server.Options{}), server.HTTPOptions{})
	session := func(hello string) string {
		res, _ := send(t, "POST", e.url+"/mcp", hello)
		return res.Header.Get("Mcp-Session-Id")
	}
	right := func(text string) bool {
		return strings.HasPrefix(text, `[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":"2","result":{`) && strings.Contains(text, `,{"jsonrpc":"2.0","id":3,"error":{"code":-32601,`) && strings.HasSuffix(strings.TrimSpace(text), "]")
	}
	before, after := session(old), session(initialize)
	for name, tc := range map[string]struct {
		session, body string
		status        int
	}{
		"messages":           {before, all, 200},
		"notifications":      {before, "[" + note + "]", 202},
		"nothing":            {before, "[]", 400},
		"what is no message": {before, "[" + ping + ",1]", 400},
		"a later version":    {after, all, 400},
		"no session":         {"", all, 400},
	} {
		res, text := send(t, "POST", e.url+"/mcp", tc.body, "Mcp-Session-Id", tc.session)
		if res.StatusCode != tc.status || tc.status == 200 && !right(text) {
			t.Errorf("%s: got %d %s, want %d", name, res.StatusCode, text, tc.status)
		}
	}
	for hello, want := range map[string]string{old: `"id":"2","result"`, initialize: `"code":-32600`} {
		var out bytes.Buffer
		in := strings.Join([]string{hello, strings.ReplaceAll(all, "\n", " "), ""}, "\n")
		if err := server.New(catalogOf(offer("", "one")), server.Options{}).ServeStdio(t.Context(), strings.NewReader(in), &out); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[1], want) || hello == old && !right(lines[1]) {
			t.Errorf("over stdio: %s", out.String())
		}
	}
}
