package mcp_test

import (
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
)

func TestCallOverEveryTransport(t *testing.T) {
	stateful := serveHTTP(t, nil)
	stateless := serveHTTP(t, &sdk.StreamableHTTPOptions{Stateless: true})
	asJSON := serveHTTP(t, &sdk.StreamableHTTPOptions{JSONResponse: true})
	tests := []struct {
		name   string
		server *v1.MCPServer
		want   string // version
	}{
		{"stdio", stdio("s", "sdk"), "2026-07-28"},
		{"stdio, older handshake", stdio("s", "raw:plain"), "2025-06-18"},
		{"stdio, dies of server/discover", stdio("s", "oldschool"), "2025-06-18"},
		{"http with sessions", web("s", stateful.URL), "2025-11-25"},
		{"http without sessions", web("s", stateless.URL), "2026-07-28"},
		{"http with JSON", web("s", asJSON.URL), "2025-11-25"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			u := open(t, mcp.Options{}, tt.server)
			res, err := u.Call(t.Context(), key("s"), "echo", []byte(`{"n":12345678901234567890}`), false)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v", res)
			st := u.Discover(t.Context())
			if !st[0].Ready || st[0].ProtocolVersion != tt.want {
				t.Errorf("state %+v", st[0])
			}
		})
	}
}
