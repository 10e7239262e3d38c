package main

import (
	"fmt"
	"net"
	"net/url"
	"testing"
)

// shape is how the client of an SDK writes its requests of tools/call to the wire: the
// headers of its HTTP library, in its order, and the members of the message in its.
type shape struct {
	name    string
	headers string // but for Host, Content-Length and those of MCP
	// body takes the progress token, the arguments and the id.
	body string
}

// shapes are those of the SDKs for TypeScript (1.x on Node's fetch) and for Python (1.x on httpx).
// What makes their calls slower, their runtimes, is left out: the load is that on serve.
var shapes = []shape{
	{
		"typescript",
		"connection: keep-alive\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\naccept-language: *\r\nsec-fetch-mode: cors\r\nuser-agent: node\r\naccept-encoding: gzip, deflate\r\n",
		`{"method":"tools/call","params":{"name":"echo","arguments":%[2]s,"_meta":{"progressToken":%[1]d}},"jsonrpc":"2.0","id":%[3]d}`,
	},
	{
		"python",
		"accept: application/json, text/event-stream\r\naccept-encoding: gzip, deflate\r\nconnection: keep-alive\r\nuser-agent: python-httpx/0.28.1\r\ncontent-type: application/json\r\n",
		`{"method":"tools/call","params":{"_meta":{"progressToken":%[1]d},"name":"echo","arguments":%[2]s},"jsonrpc":"2.0","id":%[3]d}`,
	},
}

// BenchmarkShapes is [BenchmarkOrdinary] over HTTP with clients of the other SDKs. Each call in
// flight is of a client of its own, which has its stream for what comes unasked open.
func BenchmarkShapes(b *testing.B) {
	bin := buildToolctl(b)
	upstream := launch(b, again(b, "echo-upstream"))
	proxy := launch(b, again(b, "plain-proxy", upstream.url))
	serve := launchServe(b, command(bin), "-f", hopManifests(b, upstream.url+versions[0].path))
	routes := [3]string{upstream.url + versions[0].path, proxy.url + versions[0].path, serve.url}
	for _, s := range shapes {
		c := comparison{serve: serve, floor: "proxy", callers: func(b *testing.B, route, size, inFlight int) (all []func() error) {
			for id := range inFlight {
				w := openWire(b, routes[route], versions[0].version)
				listenUnasked(b, routes[route], w)
				c := newCaller(b, routes[route], s.request(routes[route], w, id+1, fmt.Sprintf(`{"size":%d,"note":"a call"}`, size)))
				all = append(all, func() error { _, err := c.call(); return err })
			}
			return all
		}}
		c.run(b, s.name, 100, 1<<10, 100<<10, 1<<20)
	}
}

func (s *shape) request(at string, w wire, id int, args string) []byte {
	to, err := url.Parse(at)
	if err != nil {
		panic(err)
	}
	body := fmt.Sprintf(s.body, id, args, id)
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nhost: %s\r\n%smcp-session-id: %s\r\nmcp-protocol-version: %s\r\ncontent-length: %d\r\n\r\n%s",
		to.RequestURI(), to.Host, s.headers, w.session, w.version, len(body), body)
}

// listenUnasked opens the stream of a session for what its server says unasked, until the test ends.
func listenUnasked(t testing.TB, at string, w wire) {
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
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nhost: %s\r\naccept: text/event-stream\r\nmcp-session-id: %s\r\nmcp-protocol-version: %s\r\n\r\n", to.RequestURI(), to.Host, w.session, w.version); err != nil {
		t.Fatal(err)
	}
}
