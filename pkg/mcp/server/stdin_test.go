package server_test

import (
	"bytes"
	"strings"
	"testing"

	"toolctl.dev/toolctl/pkg/mcp/server"
)

// An invalid line gets an error response, and the session continues.
func TestStdioGoesOnAfterALineThatIsNoMessage(t *testing.T) {
	long := `{"jsonrpc":"2.0","id":9,"method":"ping","params":{"_meta":{"x":"` + strings.Repeat("y", 200<<10) + `"}}}`
	in := strings.Join([]string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`get me the tools`, "", `{"jsonrpc":"2.0","id":3,`, `"text"`, `{"id":4}`, long,
		`{"jsonrpc":"2.0","id":5,"method":"tools/list"}`,
		`no message at the end`,
	}, "\n")
	var out bytes.Buffer
	s := server.New(catalogOf(offer("default", "one")), server.Options{})
	if err := s.ServeStdio(t.Context(), strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	for want, n := range map[string]int{
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error: the line is not JSON"}}` + "\n":                       3,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: the line is not a JSON-RPC 2.0 message"}}` + "\n": 2,
		`"id":5,"result":{`: 1, `"id":9,"result":{`: 1,
	} {
		if got := strings.Count(out.String(), want); got != n {
			t.Errorf("%d times %s, want %d, in\n%s", got, want, n, out.String())
		}
	}
}
