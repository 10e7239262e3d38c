// Package mcptest is a mock MCP server for tests. It runs in the test's process.
//
//	s := mcptest.NewServer("weather")
//	defer s.Close()
//	s.AddTool(mcptest.Tool{Name: "get", Description: "the weather"}, mcptest.Text("sunny"))
//
// A client connects to it in memory, with [Server.Dial] as the Dial of mcp.Options, or over HTTP at the
// address in its [Server.Manifest].
//
// The server speaks every version of MCP that toolctl supports: in memory 2026-07-28, and over HTTP, where
// it keeps sessions, 2025-11-25.
package mcptest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Tool is the definition of a tool.
type Tool struct {
	// Name is the tool's name on the server. Required.
	Name string
	// Title and Description are for people and models.
	Title, Description string
	// InputSchema is a JSON Schema whose root type is object. Default: {"type":"object"}.
	InputSchema string
	// OutputSchema is the JSON Schema of structured results. Default: none.
	OutputSchema string
	// Hints are the tool's annotations. Default: none.
	Hints *v1.Hints
}

// Response is the response of a tool. If Handler is set, the server ignores the other fields.
type Response struct {
	// Text is the text of the result.
	Text string
	// Structured is the structured content of the result, as JSON.
	Structured string
	// IsError means that the tool reports failure.
	IsError bool
	// Code, if it is not 0, makes the response a JSON-RPC error with Text as its message.
	Code int64
	// Handler returns the response for the arguments of a call.
	Handler func(ctx context.Context, args json.RawMessage) Response
}

// Text returns a result with one text.
func Text(s string) Response { return Response{Text: s} }

// JSON returns a result with structured content, and with the same JSON as text.
func JSON(s string) Response { return Response{Text: s, Structured: s} }

// Failure returns the result of a tool that reports failure.
func Failure(text string) Response { return Response{Text: text, IsError: true} }

// Server is a mock MCP server. All methods are safe for concurrent use.
type Server struct {
	name string
	sdk  *sdk.Server
	http *httptest.Server

	serving sync.WaitGroup // every goroutine of the server

	mu      sync.Mutex
	tools   map[string]*tool
	pipes   []net.Conn
	dropped chan struct{} // closed by the next DropConnection, which ends delays
	closed  bool
}

type tool struct {
	response Response
	delay    time.Duration
	calls    []json.RawMessage
}

// NewServer starts a server without tools. The server reports the given name, and its Manifest has that
// name. Close it after use.
func NewServer(name string) *Server {
	s := &Server{name: name, tools: map[string]*tool{}, dropped: make(chan struct{}),
		sdk: sdk.NewServer(&sdk.Implementation{Name: name, Version: "0.0.0"}, &sdk.ServerOptions{
			Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: true}},
		})}
	s.http = httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.sdk }, nil))
	return s
}

// URL returns the server's address for streamable HTTP.
func (s *Server) URL() string { return s.http.URL }

// Manifest returns an MCPServer manifest with the server's URL.
func (s *Server) Manifest() *v1.MCPServer {
	m := v1.NewObject(v1.KindMCPServer).(*v1.MCPServer)
	m.Metadata.Name, m.Spec.URL = s.name, s.URL()
	return m
}

// Dial connects to the server in memory. It is the Dial of mcp.Options, and returns nil for servers with
// other names, which are then reached through their manifests.
func (s *Server) Dial(_ context.Context, server v1.Key) (io.ReadWriteCloser, error) {
	if server.Name != s.name {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("the mock server %q is closed", s.name)
	}
	theirs, ours := net.Pipe()
	s.pipes = append(s.pipes, ours)
	s.serving.Go(func() {
		// Run returns when either end of the pipe is closed.
		_ = s.sdk.Run(context.Background(), &sdk.IOTransport{Reader: ours, Writer: ours})
		ours.Close()
	})
	return theirs, nil
}

// AddTool adds or replaces a tool and notifies clients. It panics if the tool has no name or if the root
// type of its schema is not object.
func (s *Server) AddTool(t Tool, r Response) {
	def := &sdk.Tool{Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: json.RawMessage(t.InputSchema)}
	if t.Name == "" {
		panic("mcptest: a tool needs a name")
	}
	if t.InputSchema == "" {
		def.InputSchema = json.RawMessage(`{"type":"object"}`)
	}
	if t.OutputSchema != "" {
		def.OutputSchema = json.RawMessage(t.OutputSchema)
	}
	if h := t.Hints; h != nil {
		def.Annotations = &sdk.ToolAnnotations{Title: h.Title, DestructiveHint: h.Destructive, OpenWorldHint: h.OpenWorld,
			ReadOnlyHint: h.ReadOnly != nil && *h.ReadOnly, IdempotentHint: h.Idempotent != nil && *h.Idempotent}
	}
	s.mu.Lock()
	s.tools[t.Name] = &tool{response: r}
	s.mu.Unlock()
	s.sdk.AddTool(def, s.call)
}

// SetResponse sets the response of a tool for all later calls.
func (s *Server) SetResponse(name string, r Response) {
	s.change(name, func(t *tool) { t.response = r })
}

// Fail makes a tool report failure for all later calls.
func (s *Server) Fail(name, text string) { s.SetResponse(name, Failure(text)) }

// Delay makes a tool wait before it responds. 0 ends the delay.
func (s *Server) Delay(name string, d time.Duration) { s.change(name, func(t *tool) { t.delay = d }) }

// Calls returns the arguments of all calls of a tool so far.
func (s *Server) Calls(name string) (calls []json.RawMessage) {
	s.change(name, func(t *tool) { calls = slices.Clone(t.calls) })
	return calls
}

func (s *Server) change(name string, f func(*tool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tools[name]
	if t == nil {
		panic(fmt.Sprintf("mcptest: the server %q has no tool %q", s.name, name))
	}
	f(t)
}

// DropConnection cuts every connection, like a server that crashes. Running calls are lost; clients may
// connect again.
func (s *Server) DropConnection() {
	s.mu.Lock()
	pipes := s.pipes
	s.pipes = nil
	close(s.dropped)
	s.dropped = make(chan struct{})
	s.mu.Unlock()
	for _, p := range pipes {
		p.Close()
	}
	s.http.CloseClientConnections()
	for session := range s.sdk.Sessions() {
		s.serving.Go(func() { session.Close() }) // Close waits for the calls, which may include this one
	}
}

// Close cuts every connection and stops the server.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.DropConnection()
	s.serving.Wait()
	s.http.Close()
}

func (s *Server) call(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	var r Response
	var delay time.Duration
	var dropped chan struct{}
	s.change(req.Params.Name, func(t *tool) {
		t.calls = append(t.calls, slices.Clone(req.Params.Arguments))
		r, delay, dropped = t.response, t.delay, s.dropped
	})
	if delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-dropped:
			return nil, errors.New("the connection was dropped")
		}
	}
	if r.Handler != nil {
		r = r.Handler(ctx, req.Params.Arguments)
	}
	if r.Code != 0 {
		return nil, &jsonrpc.Error{Code: r.Code, Message: r.Text}
	}
	res := &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: r.Text}}, IsError: r.IsError}
	if r.Structured != "" {
		res.StructuredContent = json.RawMessage(r.Structured)
	}
	return res, nil
}
