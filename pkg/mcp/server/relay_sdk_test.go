package server_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/mcp/server"
)

// overHTTP returns a server of the SDK that asks for a name, in the manner of its client's protocol
// version.
func overHTTP(t testing.TB, stateless bool) *v1.MCPServer {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: "greeter", Version: "1"}, nil)
	form := &sdk.ElicitParams{Message: "your name?", RequestedSchema: &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{"name": {Type: "string"}}}}
	sdk.AddTool(s, &sdk.Tool{Name: "greet"}, func(ctx context.Context, req *sdk.CallToolRequest, _ any) (*sdk.CallToolResult, any, error) {
		var got *sdk.ElicitResult
		if req.ProtocolVersion() >= versions["modern"] {
			if got, _ = req.Params.InputResponses["name"].(*sdk.ElicitResult); got == nil {
				return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"name": form}, RequestState: "asked"}, nil, nil
			}
		} else {
			var err error
			if got, err = req.Session.Elicit(ctx, form); err != nil {
				return nil, nil, err
			}
		}
		name, _ := got.Content["name"].(string)
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "hello " + name}}}, nil, nil
	})
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: stateless})
	web := httptest.NewServer(h)
	t.Cleanup(func() {
		web.Close()
		for ss := range s.Sessions() { // sessions whose end did not reach the server in time
			ss.Close()
		}
	})
	m := v1.NewObject(v1.KindMCPServer).(*v1.MCPServer)
	m.Metadata = v1.Metadata{Name: "greeter", Namespace: v1.DefaultNamespace}
	m.Spec.URL, m.Spec.ToolNames = web.URL, "bare"
	return m
}

// The SDK's own clients and servers, over HTTP and stdio, work together through the gateway without
// additional code.
func TestTheSDKOnBothSides(t *testing.T) {
	for kind, stateless := range map[string]bool{"with sessions": false, "without sessions": true} {
		for protocol, version := range versions {
			if stateless && protocol == "sessions" {
				continue // the SDK has no way to ask an older client without a session
			}
			for _, transport := range []string{"http", "stdio"} {
				t.Run("server "+kind+", client "+protocol+" over "+transport, func(t *testing.T) {
					g, _, e := newGateway(t, mcp.Options{}, overHTTP(t, stateless))
					o := &sdk.ClientOptions{ElicitationHandler: func(_ context.Context, req *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
						if req.Params.Message != "Server greeter asks: your name?" {
							t.Errorf("asked %q", req.Params.Message)
						}
						return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"name": protocol}}, nil
					}}
					var cs *sdk.ClientSession
					if transport == "http" {
						cs = e.client(t, version, o)
					} else {
						cs = overStdio(t, server.New(g, server.Options{}), version, o)
					}
					for range 3 {
						res, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "greet"})
						if err != nil || res.IsError || len(res.Content) != 1 {
							t.Fatalf("%+v, %v", res, err)
						}
						if raw, _ := json.Marshal(res.Content[0]); !strings.Contains(string(raw), "hello "+protocol) {
							t.Errorf("got %s", raw)
						}
					}
					if state, _ := g.State(v1.Key{Name: "greeter"}); state.Starts > 2 {
						t.Errorf("%d sessions for three calls of one client", state.Starts)
					}
				})
			}
		}
	}
}

// A server has a limited number of client sessions: a further session replaces the one that was idle
// longest, and waits while all are in use.
func TestSessionsForClientsAreBounded(t *testing.T) {
	_, _, e := newGateway(t, mcp.Options{MaxPeerSessions: 2}, child("up", "older"))
	for range 4 {
		if got := e.wire(t, "older", allCaps).call(t.Context(), "told", "{}").text(t); !strings.Contains(got, "roots") {
			t.Errorf("told %s", got)
		}
	}
	var open []func()
	for range 2 { // two calls that wait for their clients
		c := e.wire(t, "modern", allCaps)
		key, state := ready(t, c, "ask", oneForm)
		open = append(open, func() {
			if got := again(t, c, "ask", oneForm, key, state).text(t); got != `[{"action":"decline"}]` {
				t.Errorf("got %s", got)
			}
		})
	}
	waiting, told := e.wire(t, "older", allCaps), make(chan wireResult, 1)
	go func() { told <- waiting.call(t.Context(), "told", "{}") }()
	for _, end := range open {
		end()
	}
	if r := <-told; !strings.Contains(r.text(t), "roots") {
		t.Errorf("got %s", r.Result)
	}
}
