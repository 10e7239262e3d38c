package main

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

// shape is how the client of an SDK writes its requests of tools/call to the wire: the
// headers of its HTTP library, in its order and case, and the members of the message in its.
type shape struct {
	name, version string
	// headers are those of a POST, and stream those of the GET for what comes unasked, which clients of
	// 2026-07-28 do not send. %[1]s is the host and %[2]s the session.
	headers, stream string
	// body takes the id, which is the progress token too, and the arguments.
	body string
}

const (
	fetchHeaders = "accept-language: *\r\nsec-fetch-mode: cors\r\nuser-agent: node\r\naccept-encoding: gzip, deflate\r\n"
	httpxHeaders = "Host: %[1]s\r\nAccept-Encoding: gzip, deflate\r\nConnection: keep-alive\r\nUser-Agent: python-httpx/0.28.1\r\n"
	bothKinds    = "content-type: application/json\r\naccept: application/json, text/event-stream\r\n"
	modernMeta   = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"load","version":"1"},"io.modelcontextprotocol/clientCapabilities":{},"progressToken":%[1]d`
)

// shapes are those of the SDKs for TypeScript (as @modelcontextprotocol/sdk 1.32.2 and client 2.3.1 sent them on
// Node 22, the first of which knows 2025-11-25 alone) and for Python (by the sources of mcp 1.x and 2.x and of httpx 0.28).
// What makes their calls slower, their runtimes, is left out: the load is that on serve.
var shapes = []shape{
	{
		"typescript", "2025-11-25",
		"host: %[1]s\r\nconnection: keep-alive\r\nmcp-session-id: %[2]s\r\nmcp-protocol-version: 2025-11-25\r\n" + bothKinds + fetchHeaders,
		"host: %[1]s\r\nconnection: keep-alive\r\nmcp-session-id: %[2]s\r\nmcp-protocol-version: 2025-11-25\r\naccept: text/event-stream\r\n" + fetchHeaders,
		`{"method":"tools/call","params":{"name":"echo","arguments":%[2]s,"_meta":{"progressToken":%[1]d}},"jsonrpc":"2.0","id":%[1]d}`,
	},
	{
		"typescript-modern", "2026-07-28",
		"host: %[1]s\r\nconnection: keep-alive\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: echo\r\n" + bothKinds + fetchHeaders,
		"",
		`{"method":"tools/call","params":{"name":"echo","arguments":%[2]s,"_meta":{` + modernMeta + `}},"jsonrpc":"2.0","id":%[1]d}`,
	},
	{
		"python", "2025-11-25",
		httpxHeaders + "accept: application/json, text/event-stream\r\ncontent-type: application/json\r\nmcp-session-id: %[2]s\r\nmcp-protocol-version: 2025-11-25\r\n",
		httpxHeaders + "accept: application/json, text/event-stream\r\ncontent-type: application/json\r\nmcp-session-id: %[2]s\r\nmcp-protocol-version: 2025-11-25\r\nAccept: text/event-stream\r\nCache-Control: no-store\r\n",
		`{"method":"tools/call","params":{"name":"echo","arguments":%[2]s,"_meta":{"progressToken":%[1]d}},"jsonrpc":"2.0","id":%[1]d}`,
	},
	{
		"python-modern", "2026-07-28",
		httpxHeaders + "accept: application/json, text/event-stream\r\ncontent-type: application/json\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: echo\r\n",
		"",
		`{"jsonrpc":"2.0","id":%[1]d,"method":"tools/call","params":{"name":"echo","arguments":%[2]s,"_meta":{` + modernMeta + `}}}`,
	},
}

// BenchmarkShapes is [BenchmarkOrdinary] with clients of the other SDKs. Over HTTP each call in
// flight is of a client of its own, which has its stream for what comes unasked open if it has a session.
func BenchmarkShapes(b *testing.B) {
	bin := buildToolctl(b)
	upstream := launch(b, again(b, "echo-upstream"))
	proxy := launch(b, again(b, "plain-proxy", upstream.url))
	for _, protocol := range versions {
		serve := launchServe(b, command(bin), "-f", hopManifests(b, upstream.url+protocol.path))
		routes := [3]string{upstream.url + protocol.path, proxy.url + protocol.path, serve.url}
		for _, s := range shapes {
			if s.version != protocol.version {
				continue
			}
			c := comparison{serve: serve, floor: "proxy", hop: proxy, callers: func(b *testing.B, route, size, inFlight int) (all []func() error) {
				for id := range inFlight {
					c := s.open(b, routes[route], id+1, fmt.Sprintf(`{"size":%d,"note":"a call"}`, size))
					all = append(all, func() error { _, err := c.call(); return err })
				}
				return all
			}}
			c.run(b, s.name, 100, 1<<10, 100<<10, 1<<20)
		}
	}
	stdioShapes(b, bin)
}

// open begins a session, where there are any, and returns a client that calls.
func (s *shape) open(t testing.TB, at string, id int, args string) *caller {
	t.Helper()
	w := openWire(t, at, s.version)
	if s.stream != "" {
		s.listen(t, at, w)
	}
	return newCaller(t, at, s.request(at, w, id, args))
}

func (s *shape) request(at string, w wire, id int, args string) []byte {
	to, err := url.Parse(at)
	if err != nil {
		panic(err)
	}
	body := fmt.Sprintf(s.body, id, args)
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\n%scontent-length: %d\r\n\r\n%s", to.RequestURI(), s.head(s.headers, to, w), len(body), body)
}

// head fills the headers in.
func (s *shape) head(headers string, to *url.URL, w wire) string {
	return strings.NewReplacer("%[1]s", to.Host, "%[2]s", w.session).Replace(headers)
}

// listen opens the stream of a session for what its server says unasked, until the test ends.
func (s *shape) listen(t testing.TB, at string, w wire) {
	t.Helper()
	to, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", to.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\n%s\r\n", to.RequestURI(), s.head(s.stream, to, w)); err != nil {
		t.Fatal(err)
	}
}

// TestShapes holds that each shape is one that serve answers.
func TestShapes(t *testing.T) {
	e := serveHTTP(t, "-f", echoTool(t))
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			if _, err := s.open(t, e.url, 1, `{"size":100}`).call(); err != nil {
				t.Error(err)
			}
		})
	}
}

// echoTool is a file with a mock that is called as the tool of the load.
func echoTool(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "echo.yaml")
	writeFile(t, file, `
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: echo}
spec:
  description: Echoes
  input_schema: {type: object, properties: {size: {type: integer}}}
  mock_result: {ok: true}
`)
	return file
}
