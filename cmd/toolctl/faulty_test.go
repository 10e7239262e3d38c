package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// faultyStdio is an MCP server over stdio. It starts a session and offers one tool, whose name is its first argument
// and selects how the server misbehaves.
func faultyStdio() {
	in, out := bufio.NewReader(os.Stdin), bufio.NewWriter(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		if !misbehave(os.Args[1], line, out) {
			os.Exit(1)
		}
		out.Flush()
	}
}

// faultyHTTP is the same server over HTTP, at /KIND.
func faultyHTTP() {
	serveUntilClosed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		var m struct{ ID json.RawMessage }
		if json.Unmarshal(body, &m) != nil || m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		out := bufio.NewWriter(w)
		if kind := strings.TrimPrefix(r.URL.Path, "/"); kind == "hang" && strings.Contains(string(body), `"tools/call"`) {
			<-r.Context().Done()
		} else if !misbehave(kind, body, out) {
			panic(http.ErrAbortHandler)
		}
		out.Flush()
	}))
}

// misbehave answers one message. It returns false if the server breaks down.
func misbehave(kind string, message []byte, out *bufio.Writer) bool {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Arguments json.RawMessage }
	}
	if json.Unmarshal(message, &m) != nil || m.ID == nil {
		return true
	}
	answer := func(result string) bool {
		_, err := fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
		return err == nil
	}
	switch m.Method {
	case "initialize":
		return answer(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"faulty","version":"1"}}`)
	case "tools/list":
		return answer(`{"tools":[{"name":"` + kind + `","inputSchema":{"type":"object"}}]}`)
	case "tools/call":
	default:
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown method"}}`+"\n", m.ID)
		return true
	}
	switch kind {
	case "die":
		return false
	case "hang":
	case "talk": // logs its arguments and its environment to all clients
		text := string(m.Params.Arguments) + " with " + os.Getenv("API_KEY")
		fmt.Fprintf(out, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","logger":%s,"data":{"text":%s,"password":"of-the-server"}}}`+"\n", quoted(text), quoted(text))
		fmt.Fprintln(os.Stderr, text)
		return answer(`{"content":[]}`)
	case "broken":
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"content":[}}`+"\n", m.ID)
	case "flood":
		mb, _ := strconv.Atoi(os.Getenv("FLOOD_MB"))
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, m.ID)
		piece := strings.Repeat("x", 1<<20)
		for range mb {
			if _, err := out.WriteString(piece); err != nil {
				return false
			}
		}
		out.WriteString(`"}]}}` + "\n")
	}
	return true
}

// changingUpstream is an MCP server over HTTP with the tool echo and other tools that constantly come and go.
func changingUpstream() {
	s := newEchoServer()
	go func() {
		for i := 0; ; i++ {
			<-time.After(5 * time.Millisecond)
			name := fmt.Sprintf("passing-%d", i%20)
			s.AddTool(&sdk.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: name}}}, nil
			})
			s.RemoveTools(fmt.Sprintf("passing-%d", (i+10)%20))
		}
	}()
	serveUntilClosed(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil))
}
