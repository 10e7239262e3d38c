package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/mcp/server"
)

// A suspended call over stdin continues with the client's next request, while other calls are answered. A
// call that the client never continues ends with stdin.
func TestStdioHeldCalls(t *testing.T) {
	c := catalogOf(offer("", "asks"), offer("", "quick"))
	ended := make(chan error, 10)
	c.do = func(ctx context.Context, call v1.Call) (v1.Result, error) {
		if call.Tool == "default/quick" {
			return v1.Result{Status: v1.StatusComplete, Content: []byte(`{"done":true}`)}, nil
		}
		answers, err := mcp.PeerOf(ctx).Ask(ctx, map[string]mcp.InputRequest{"q": {Method: "elicitation/create", Params: []byte(`{"message":"m"}`)}})
		ended <- err
		return v1.Result{Status: v1.StatusComplete, Content: fmt.Appendf(nil, `{"answer":%s}`, answers["q"])}, err
	}
	stdin, toServer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fromServer, stdout, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer fromServer.Close()
	served := make(chan error, 1)
	go func() {
		served <- server.New(c, server.Options{}).ServeStdio(t.Context(), stdin, stdout)
		stdout.Close()
	}()
	lines := bufio.NewScanner(fromServer)
	call := func(id int, tool, more string) string {
		t.Helper()
		fmt.Fprintf(toServer, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{}%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}}}`+"\n", id, tool, more)
		if !lines.Scan() || !strings.Contains(lines.Text(), fmt.Sprintf(`"id":%d,`, id)) {
			t.Fatalf("call %d: %s %v", id, lines.Text(), lines.Err())
		}
		return lines.Text()
	}
	var asked struct {
		Result struct {
			Type  string `json:"resultType"`
			State string `json:"requestState"`
		} `json:"result"`
	}
	for id := 10; id < 40; id += 10 { // goroutines that were kept carry the later ones out
		if text := call(id, "asks", ""); json.Unmarshal([]byte(text), &asked) != nil || asked.Result.Type != "input_required" {
			t.Fatal(text)
		}
		if text := call(id+1, "quick", ""); !strings.Contains(text, `"done":true`) {
			t.Error(text)
		}
		state := fmt.Sprintf(`,"requestState":%q,"inputResponses":{"q":{"action":"decline"}}`, asked.Result.State)
		if text := call(id+2, "asks", state); !strings.Contains(text, `"answer":{"action":"decline"}`) {
			t.Error(text)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if text := call(1, "asks", ""); !strings.Contains(text, "input_required") {
		t.Error(text)
	}
	toServer.Close()
	if err := <-ended; err == nil {
		t.Error("a call whose client is gone was answered")
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if lines.Scan() {
		t.Errorf("after the end: %s", lines.Text())
	}
}
