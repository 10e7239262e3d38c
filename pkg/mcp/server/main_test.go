package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/mcp/server"
)

// versions are the versions of a client, by protocol version.
var versions = map[string]string{"sessions": "2025-11-25", "modern": "2026-07-28"}

// catalog is a Catalog of tools whose calls are a function.
type catalog struct {
	do     func(ctx context.Context, call v1.Call) (v1.Result, error)
	settle func(ctx context.Context)
	report func(progress func(mcp.Progress))

	mu     sync.Mutex
	offers []server.Offer
}

func (c *catalog) Contents() server.Contents {
	c.mu.Lock()
	defer c.mu.Unlock()
	return server.Contents{Tools: c.offers}
}

func (c *catalog) GetPrompt(context.Context, v1.Key, string, map[string]string) (mcp.PromptResult, error) {
	return mcp.PromptResult{}, errors.New("no prompts")
}

func (c *catalog) ReadResource(context.Context, v1.Key, string) ([]v1.Part, error) {
	return nil, errors.New("no resources")
}

func (c *catalog) Complete(context.Context, v1.Key, mcp.CompletionRequest) (mcp.Completion, error) {
	return mcp.Completion{}, errors.New("no completions")
}

func (c *catalog) Subscribe(context.Context, v1.Key, string) error {
	return errors.New("no resources")
}
func (c *catalog) Unsubscribe(context.Context, v1.Key, string) error { return nil }
func (c *catalog) RootsChanged(string)                               {}
func (c *catalog) SetLogLevel(string, string)                        {}
func (c *catalog) EndPeer(string)                                    {}

func (c *catalog) set(offers ...server.Offer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offers = offers
}

func (c *catalog) Settle(ctx context.Context, _ string) {
	if c.settle != nil {
		c.settle(ctx)
	}
}

func (c *catalog) Call(ctx context.Context, call v1.Call, progress func(mcp.Progress)) (v1.Result, error) {
	if c.report != nil {
		c.report(progress)
	}
	if c.do == nil {
		return v1.Result{Status: v1.StatusComplete, Content: json.RawMessage(`{"tool":"` + call.Tool + `"}`)}, nil
	}
	return c.do(ctx, call)
}

// offer returns a tool in a namespace; change may modify it.
func offer(namespace, name string, change ...func(*server.Offer)) server.Offer {
	t := v1.NewObject(v1.KindTool).(*v1.Tool)
	t.Metadata.Name, t.Metadata.Namespace = name, namespace
	t.Spec.Description = "does " + name
	t.Spec.InputSchema = json.RawMessage(`{"type":"object"}`)
	o := server.Offer{Tool: t, Name: t.Namespace() + "/" + name}
	for _, f := range change {
		f(&o)
	}
	return o
}

func catalogOf(offers ...server.Offer) *catalog { return &catalog{offers: offers} }

// answer returns a catalog of one tool that answers every call with the same result.
func answer(res v1.Result, err error, change ...func(*server.Offer)) *catalog {
	c := catalogOf(offer("", "do", change...))
	c.do = func(context.Context, v1.Call) (v1.Result, error) { return res, err }
	return c
}

// logs is a buffer for concurrent use.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logs) logger() *slog.Logger { return slog.New(slog.NewJSONHandler(l, nil)) }

// overStdio connects a client to a server over a pair of pipes. The server ends with the test.
func overStdio(t testing.TB, s *server.Server, version string, o *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- s.ServeStdio(ctx, fromClient, toClient)
		toClient.Close()
	}()
	cs := connect(t, &sdk.IOTransport{Reader: fromServer, Writer: toServer}, version, o)
	t.Cleanup(func() {
		cs.Close()
		stop()
		if err := <-ended; err != nil {
			t.Errorf("ServeStdio: %v", err)
		}
	})
	return cs
}

func connect(t testing.TB, transport sdk.Transport, version string, o *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o)
	listening := make(chan struct{}, 1)
	client.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			if method == "notifications/subscriptions/acknowledged" {
				listening <- struct{}{}
			}
			return next(ctx, method, req)
		}
	})
	cs, err := client.Connect(context.Background(), transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	if version == versions["modern"] && o != nil && o.ToolListChangedHandler != nil {
		<-listening
	}
	return cs
}

// endpoint is a listening server.
type endpoint struct {
	url  string
	stop context.CancelFunc
	end  chan error
}

// listen serves HTTP on a free port until the test ends.
func listen(t testing.TB, s *server.Server, o server.HTTPOptions) *endpoint {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	e := &endpoint{stop: stop, end: make(chan error, 1)}
	at := make(chan net.Addr, 1)
	o.Listening = func(a net.Addr) { at <- a }
	go func() { e.end <- s.ListenAndServe(ctx, "127.0.0.1:0", o) }()
	select {
	case a := <-at:
		e.url = "http://" + a.String()
	case err := <-e.end:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		if err := <-e.end; err != nil {
			t.Errorf("ListenAndServe: %v", err)
		}
		close(e.end)
	})
	return e
}

// client connects over HTTP; headers are sent with each request.
func (e *endpoint) client(t testing.TB, version string, o *sdk.ClientOptions, headers ...string) *sdk.ClientSession {
	t.Helper()
	return clientAt(t, e.url+"/mcp", version, o, headers...)
}

func clientAt(t testing.TB, url, version string, o *sdk.ClientOptions, headers ...string) *sdk.ClientSession {
	t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	cs := connect(t, &sdk.StreamableClientTransport{
		Endpoint: url, HTTPClient: &http.Client{Transport: &withHeaders{transport, headers}}, DisableStandaloneSSE: o == nil,
	}, version, o)
	t.Cleanup(func() {
		cs.Close()
		transport.CloseIdleConnections()
	})
	return cs
}

type withHeaders struct {
	http.RoundTripper
	headers []string
}

func (h *withHeaders) RoundTrip(r *http.Request) (*http.Response, error) {
	for i := 0; i < len(h.headers); i += 2 {
		r.Header.Set(h.headers[i], h.headers[i+1])
	}
	return h.RoundTripper.RoundTrip(r)
}
