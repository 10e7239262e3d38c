package main

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

// shape is the form in which the client of an SDK sends tools/call: the headers of its HTTP library and the members of
// the message, in their order and case.
type shape struct {
	name, version string
	// headers are the headers of a POST. stream has the headers of the GET for unsolicited messages, which clients of
	// 2026-07-28 do not send. %[1]s is the host and %[2]s the session.
	headers, stream string
	// body has placeholders for the id, which is also the progress token, and for the arguments.
	body string
}

const (
	fetchHeaders = "accept-language: *\r\nsec-fetch-mode: cors\r\nuser-agent: node\r\naccept-encoding: gzip, deflate\r\n"
	httpxHeaders = "Host: %[1]s\r\nAccept-Encoding: gzip, deflate\r\nConnection: keep-alive\r\nUser-Agent: python-httpx/0.28.1\r\n"
	bothKinds    = "content-type: application/json\r\naccept: application/json, text/event-stream\r\n"
	modernMeta   = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"load","version":"1"},"io.modelcontextprotocol/clientCapabilities":{},"progressToken":%[1]d`
)

// shapes are those of the SDKs for TypeScript (as sent by @modelcontextprotocol/sdk 1.32.2, which only knows
// 2025-11-25, and client 2.3.1 on Node 22) and for Python (according to the sources of mcp 1.x and 2.x and of httpx
// 0.28). The runtimes, which make their calls slower, are left out, because the benchmark measures the load on serve.
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

// BenchmarkShapes is [BenchmarkOrdinary] with clients of the other SDKs. Over HTTP each concurrent call has its own
// client. A client with a session keeps its stream for unsolicited messages open.
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

// open begins a session, if the version has sessions, and returns a client that calls.
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

// head fills in the headers.
func (s *shape) head(headers string, to *url.URL, w wire) string {
	return strings.NewReplacer("%[1]s", to.Host, "%[2]s", w.session).Replace(headers)
}

// listen opens the stream of a session for unsolicited messages until the test ends.
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

// TestShapes checks that serve accepts each shape.
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

// echoTool writes a manifest with a mock of the tool that the load calls.
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
