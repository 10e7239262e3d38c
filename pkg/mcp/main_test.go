package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
)

// The test binary acts as its own MCP server. This variable selects the behaviour.
const roleVar = "MCP_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		os.Exit(runRole(role))
	}
	goleak.VerifyTestMain(m)
}

func runRole(role string) int {
	name, arg, _ := strings.Cut(role, ":")
	switch name {
	case "sdk":
		if arg == "noisy" {
			fmt.Fprintln(os.Stderr, "starting with token "+os.Getenv("TOKEN"))
		}
		if arg == "slow" {
			<-time.After(300 * time.Millisecond)
		}
		if err := newSDKServer().Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	case "raw":
		rawServer(rawAnswers[arg])
	case "mute": // reads but never answers
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "deaf": // does not even end when it should
		if arg == "noisy" {
			fmt.Fprintln(os.Stderr, "started")
		}
		select {}
	case "die":
		fmt.Fprintln(os.Stderr, "no configuration found")
		return 3
	case "oldschool": // crashes on an unknown method
		rawServer(func(method string, _ json.RawMessage) (string, bool) {
			if method == "server/discover" {
				os.Exit(9)
			}
			return rawAnswers["plain"](method, nil)
		})
	case "flood":
		line := strings.Repeat("x", 1<<16)
		for {
			if _, err := fmt.Print(line); err != nil {
				return 1
			}
		}
	case "parent":
		return runParent()
	}
	return 0
}

// newSDKServer returns a server with tools of every behaviour.
func newSDKServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1.2.3"}, &sdk.ServerOptions{Instructions: "be kind"})
	add := func(name string, f func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error)) {
		s.AddTool(&sdk.Tool{Name: name, Description: "does " + name, InputSchema: json.RawMessage(`{"type":"object"}`)}, f)
	}
	text := func(s string) *sdk.CallToolResult {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
	}
	add("echo", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return text(string(r.Params.Arguments)), nil
	})
	add("env", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		env, _ := json.Marshal(os.Environ())
		return text(string(env)), nil
	})
	add("pid", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return text(strconv.Itoa(os.Getpid())), nil
	})
	add("fail", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		r := text("out of ink")
		r.IsError = true
		return r, nil
	})
	add("crash", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		os.Exit(7)
		return nil, nil
	})
	add("flaky", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if rand.IntN(100) == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return text(string(r.Params.Arguments)), nil
	})
	add("progress", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		for i := range 5 {
			_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1), Total: 5, Message: "step"})
		}
		return text("done"), nil
	})
	add("meta", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		m, _ := json.Marshal(r.Params.Meta)
		return text(string(m)), nil
	})
	add("grow", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		add("grown", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return text("ok"), nil })
		return text("ok"), nil
	})
	add("spawn", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		pid, err := spawnGrandchild()
		if err != nil {
			return nil, err
		}
		return text(strconv.Itoa(pid)), nil
	})
	var mu sync.Mutex
	cancelled := 0
	add("hang", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		<-ctx.Done()
		mu.Lock()
		cancelled++
		mu.Unlock()
		return nil, ctx.Err()
	})
	add("cancelled", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		mu.Lock()
		defer mu.Unlock()
		return text(strconv.Itoa(cancelled)), nil
	})
	s.AddPrompt(&sdk.Prompt{Name: "greet", Arguments: []*sdk.PromptArgument{{Name: "who", Required: true}}}, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{Description: "a greeting", Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: "hello " + r.Params.Arguments["who"]}}}}, nil
	})
	s.AddResource(&sdk.Resource{URI: "file:///a.txt", Name: "a", MIMEType: "text/plain"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: "file:///a.txt", MIMEType: "text/plain", Text: "A"}}}, nil
	})
	s.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: "file:///{name}", Name: "file"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return nil, sdk.ResourceNotFoundError("x")
	})
	return s
}

// rawServer speaks the older handshake and writes its own responses, for errors that the SDK's server
// cannot make. A response that is not an object is written unchanged.
func rawServer(answer func(method string, params json.RawMessage) (string, bool)) {
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Params json.RawMessage
		}
		if json.Unmarshal(line, &m) != nil || m.ID == nil {
			continue
		}
		result, raw := answer(m.Method, m.Params)
		switch {
		case raw && result == "":
		case raw:
			fmt.Println(strings.Replace(result, "ID", string(m.ID), 1))
		case result == "":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`+"\n", m.ID)
		default:
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, strings.ReplaceAll(result, "\n", " "))
		}
	}
}

func rawTools(list string) func(string, json.RawMessage) (string, bool) {
	return func(method string, params json.RawMessage) (string, bool) {
		switch method {
		case "initialize":
			return `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"0"}}`, false
		case "tools/list":
			return list, false
		case "tools/call":
			return `{"content":[{"type":"text","text":"12345678901234567890"}]}`, false
		}
		return "", false
	}
}

var rawAnswers = map[string]func(string, json.RawMessage) (string, bool){
	"plain": rawTools(`{"tools":[{"name":"t","description":"d","inputSchema":{"type":"object","properties":{"z":{"type":"integer","maximum":12345678901234567890},"a":{}}}}]}`),
	"broken": rawTools(`{"tools":[
		{"name":"good","description":"d","inputSchema":{"type":"object"}},
		{"name":"array","inputSchema":{"type":"array"}},
		{"name":"none"},
		{"name":"bool","inputSchema":true},
		{"name":"has space","inputSchema":{"type":"object"}},
		{"name":"desc","description":5,"inputSchema":{"type":"object"}},
		{"name":"hints","annotations":"x","inputSchema":{"type":"object"}},
		{"name":"twice","inputSchema":{"type":"object"}},
		{"name":"twice","inputSchema":{"type":"object"}},
		{"name":"","inputSchema":{"type":"object"}}, 7, null,
		{"name":"readOnly","title":"Read","annotations":{"readOnlyHint":true,"title":"Other"},"inputSchema":{"type":"object"}}]}`),
	"ignores": func(method string, p json.RawMessage) (string, bool) {
		if method == "server/discover" {
			return "", true
		}
		return rawTools(`{"tools":[]}`)(method, p)
	},
	"badjson": func(method string, p json.RawMessage) (string, bool) {
		if method == "tools/call" {
			return "Listening on port 3000", true
		}
		return rawTools(`{"tools":[]}`)(method, p)
	},
	"nolist": rawTools(`{"tools":{"name":"t"}}`),
	"baderror": func(method string, p json.RawMessage) (string, bool) {
		if method == "tools/call" {
			return `{"jsonrpc":"2.0","id":ID,"error":{"code":"x"}}`, true
		}
		return rawTools(`{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`)(method, p)
	},
	"loop": func(method string, p json.RawMessage) (string, bool) {
		return rawTools(`{"tools":[{"name":"t`+strconv.Itoa(rand.IntN(1e9))+`","inputSchema":{"type":"object"}}],"nextCursor":"again"}`)(method, p)
	},
	"endless": func(method string, p json.RawMessage) (string, bool) {
		n := strconv.Itoa(rand.IntN(1e9))
		return rawTools(`{"tools":[{"name":"t`+n+`","inputSchema":{"type":"object"}}],"nextCursor":"`+n+`"}`)(method, p)
	},
	"huge": func(method string, p json.RawMessage) (string, bool) {
		if method == "tools/call" {
			return `{"content":[{"type":"text","text":"` + strings.Repeat("x", 2<<20) + `"}]}`, false
		}
		return rawTools(`{"tools":[]}`)(method, p)
	},
	"pingflood": func(method string, p json.RawMessage) (string, bool) {
		if method == "tools/call" {
			for i := range 100_000 {
				fmt.Printf(`{"jsonrpc":"2.0","id":"s%d","method":"ping"}`+"\n", i)
			}
		}
		return rawTools(`{"tools":[]}`)(method, p)
	},
	"odd": func(method string, p json.RawMessage) (string, bool) {
		if method == "tools/call" { // would crash a careless client
			for _, m := range []string{`{"jsonrpc":"2.0","method":"notifications/elicitation/complete"}`,
				`{"jsonrpc":"2.0","method":"notifications/progress"}`, `{"jsonrpc":"2.0","method":"notifications/message","params":null}`,
				`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":null}`,
				`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}`,
				`{"jsonrpc":"2.0","id":1,"method":"elicitation/create"}`, `{"jsonrpc":"2.0","id":2,"method":"sampling/createMessage","params":{}}`,
				`{"jsonrpc":"2.0","id":3,"method":"completion/complete","params":{}}`, `{"jsonrpc":"2.0","id":4,"method":"roots/list"}`,
				`{"jsonrpc":"2.0","id":999,"result":{}}`, `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}`, "", "  "} {
				fmt.Println(m)
			}
		}
		return rawTools(`{"tools":[]}`)(method, p)
	},
}

// serveSSE serves the SDK's server over the older HTTP transport.
func serveSSE(t testing.TB) *httptest.Server {
	t.Helper()
	s := newSDKServer()
	h := httptest.NewServer(sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return s }, nil))
	t.Cleanup(func() { h.CloseClientConnections(); h.Close() })
	return h
}

// stdio returns the manifest of this binary in a role.
func stdio(name, role string) *v1.MCPServer {
	m := v1.NewObject(v1.KindMCPServer).(*v1.MCPServer)
	m.Metadata.Name = name
	m.Spec.Command, m.Spec.Env = os.Args[0], map[string]string{roleVar: role}
	return m
}

// web returns the manifest of a URL.
func web(name, url string) *v1.MCPServer {
	m := v1.NewObject(v1.KindMCPServer).(*v1.MCPServer)
	m.Metadata.Name, m.Spec.URL = name, url
	return m
}

func key(name string) v1.Key {
	return v1.Key{Kind: v1.KindMCPServer, Namespace: v1.DefaultNamespace, Name: name}
}

// open returns upstreams that end with the test.
func open(t testing.TB, o mcp.Options, servers ...*v1.MCPServer) *mcp.Upstreams {
	t.Helper()
	if o.StopTimeout == 0 {
		o.StopTimeout = 300 * time.Millisecond
	}
	u := mcp.NewUpstreams(servers, o)
	t.Cleanup(func() {
		if err := u.Close(); err != nil {
			t.Error(err)
		}
	})
	return u
}

// serveHTTP serves the SDK's server over streamable HTTP.
func serveHTTP(t testing.TB, o *sdk.StreamableHTTPOptions) *httptest.Server {
	t.Helper()
	s := newSDKServer()
	h := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, o))
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
		for ss := range s.Sessions() {
			_ = ss.Close()
		}
	})
	return h
}

// logger writes to the log of the test.
func logger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
