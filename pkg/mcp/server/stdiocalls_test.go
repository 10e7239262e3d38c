package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp/server"
)

// Calls over stdin get their responses in any order, each on one line. They end when their client cancels
// them, and all have responses when stdin ends.
func TestStdioCalls(t *testing.T) {
	began, goOn := make(chan string, 10), make(chan struct{})
	c := catalogOf(offer("", "quick"), offer("", "held"), offer("", "lines"))
	c.do = func(ctx context.Context, call v1.Call) (v1.Result, error) {
		began <- call.Tool
		switch call.Tool {
		case "default/held":
			select {
			case <-ctx.Done():
				return v1.Result{}, ctx.Err()
			case <-goOn:
			}
		case "default/lines":
			return v1.Result{Status: v1.StatusComplete, Content: []byte("{\n\"a\":\r\n1}")}, nil
		}
		return v1.Result{Status: v1.StatusComplete, Content: []byte(`{"done":true}`)}, nil
	}
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- server.New(c, server.Options{}).ServeStdio(t.Context(), fromClient, toClient)
		toClient.Close()
	}()
	lines := bufio.NewScanner(fromServer)
	say := func(line string) { fmt.Fprintln(toServer, line) }
	next := func() string {
		if !lines.Scan() {
			t.Fatal("nothing more came: ", lines.Err())
		}
		return lines.Text()
	}
	call := func(id, tool string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":{}}}`
	}
	expect := func(texts ...string) {
		t.Helper()
		got := next()
		for _, text := range texts {
			if !strings.Contains(got, text) {
				t.Errorf("got %s, expected %s", got, text)
			}
		}
	}
	say(call("0", "quick"))
	expect(`"id":0`, `"error"`) // before initialize
	say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	expect(`"id":1`, `"protocolVersion":"2025-11-25"`)
	say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	say(call("2", "held"))
	<-began
	say(call(`"two"`, "quick"))
	<-began
	expect(`"id":"two"`, `"done":true`)
	say(call("3", "lines"))
	<-began
	expect(`"id":3`, `"structuredContent":{"a":1}`)
	say(call("4", "missing"))
	expect(`"id":4`, `"code":-32602`, `unknown tool`)
	say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	expect(`"id":2`, `"error"`)
	say(call("2", "held")) // the id is free again
	<-began
	toServer.Close()
	close(goOn)
	expect(`"id":2`, `"done":true`)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if lines.Scan() {
		t.Errorf("after the end: %s", lines.Text())
	}
}
