package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// These programs are the parts of a route to a tool, each in its own process: an upstream, a plain reverse proxy, and
// toolctl serve.

// echoSchema and saidSchema are the schemas of the tool that an upstream offers.
const (
	echoSchema = `{"type":"object","properties":{"size":{"type":"integer","minimum":0},"note":{"type":"string","maxLength":200}},"required":["size"],"additionalProperties":false}`
	saidSchema = `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`
)

// newEchoServer returns an MCP server with the tool echo, which returns about the requested number of bytes: half as
// text, half as structured content.
func newEchoServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "echo", Version: "1"}, nil)
	s.AddTool(&sdk.Tool{Name: "echo", Description: "Echo", InputSchema: json.RawMessage(echoSchema), OutputSchema: json.RawMessage(saidSchema)},
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			var in struct{ Size int }
			if err := json.Unmarshal(r.Params.Arguments, &in); err != nil {
				return nil, err
			}
			text := `{"text":"` + strings.Repeat("x", max(0, in.Size/2-45)) + `"}`
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}, StructuredContent: json.RawMessage(text)}, nil
		})
	return s
}

// echoUpstream serves the echo server over HTTP, with sessions and without.
func echoUpstream() {
	s := newEchoServer()
	get := func(*http.Request) *sdk.Server { return s }
	mux := http.NewServeMux()
	mux.Handle("/sessions", sdk.NewStreamableHTTPHandler(get, nil))
	mux.Handle("/modern", sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{Stateless: true}))
	serveUntilClosed(mux)
}

// echoStdio serves the echo server over stdin and stdout.
func echoStdio() {
	if err := newEchoServer().Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		os.Exit(1)
	}
}

// plainProxy passes requests on to the address in its argument.
func plainProxy() {
	to, err := url.Parse(os.Args[1])
	if err != nil {
		panic(err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 64
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, Transport: transport}
	serveUntilClosed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// If the response came before net/http has sent the whole request, net/http would cut the connection.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
}

// plainPipe starts the program in its argument, and copies its stdin to the program and the program's stdout to its
// own.
func plainPipe() {
	cmd := exec.Command(os.Args[1])
	in, err := cmd.StdinPipe()
	if err != nil {
		panic(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		panic(err)
	}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	go func() { _, _ = copyPlain(in, os.Stdin); in.Close() }()
	_, _ = copyPlain(os.Stdout, out)
	_ = cmd.Wait()
	os.Exit(0)
}

// copyPlain copies through memory, because io.Copy of two files would leave the work to the kernel.
func copyPlain(to io.Writer, from io.Reader) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, 64<<10))
}

// serveUntilClosed prints the address that it serves, and ends when stdin does.
func serveUntilClosed(h http.Handler) {
	s := httptest.NewServer(h)
	fmt.Println(s.URL)
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}
