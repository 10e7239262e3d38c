package mcptest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/executors"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/mcp/mcptest"
	"toolctl.dev/toolctl/pkg/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A mock server stands in for a real one behind a registry.
func Example() {
	s := mcptest.NewServer("weather")
	defer s.Close()
	s.AddTool(mcptest.Tool{Name: "get", Description: "the weather"}, mcptest.JSON(`{"sky":"clear"}`))

	up := mcp.NewUpstreams([]*v1.MCPServer{s.Manifest()}, mcp.Options{Dial: s.Dial})
	defer up.Close()
	var objects []v1.Object
	for _, state := range up.Discover(context.Background()) {
		for _, t := range state.Tools {
			objects = append(objects, t.Tool)
		}
	}
	objects = append(objects, s.Manifest())
	reg, err := registry.New(objects, registry.Options{Executors: executors.All(executors.Options{Upstream: up})})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer reg.Close()

	res, err := reg.Execute(context.Background(), v1.Call{Tool: "weather__get"})
	fmt.Println(res.Status, string(res.Content), err)
	s.Fail("get", "no satellite in sight")
	res, err = reg.Execute(context.Background(), v1.Call{Tool: "weather__get"})
	fmt.Println(res.Status, err)
	fmt.Println(len(s.Calls("get")), "calls")
	// Output:
	// complete {"sky":"clear"} <nil>
	// failed tool "weather__get": no satellite in sight
	// 2 calls
}

func TestServer(t *testing.T) {
	for name, inMemory := range map[string]bool{"in memory": true, "http": false} {
		t.Run(name, func(t *testing.T) {
			s := mcptest.NewServer("s")
			defer s.Close()
			yes := true
			s.AddTool(mcptest.Tool{Name: "t", Title: "T", Hints: &v1.Hints{ReadOnly: &yes}, InputSchema: `{"type":"object","required":["a"]}`}, mcptest.Text("hello"))
			changes := make(chan v1.Key, 10)
			o := mcp.Options{OnChange: func(k v1.Key) { changes <- k }}
			if inMemory {
				o.Dial = s.Dial
			}
			up := mcp.NewUpstreams([]*v1.MCPServer{s.Manifest()}, o)
			defer up.Close()
			key := v1.Key{Kind: v1.KindMCPServer, Namespace: "default", Name: "s"}
			call := func(ctx context.Context) (v1.Result, error) { return up.Call(ctx, key, "t", []byte(`{"a":1}`), false) }

			if st := up.Discover(t.Context())[0]; !st.Ready || len(st.Tools) != 1 || !st.Tools[0].Tool.Spec.Hints.Retryable() || (st.Transport == "memory") != inMemory {
				t.Errorf("state %+v", st)
			}
			if res, err := call(t.Context()); err != nil || string(res.Content) != `"hello"` {
				t.Errorf("got %s, %v", res.Content, err)
			}
			s.SetResponse("t", mcptest.Response{Handler: func(_ context.Context, args json.RawMessage) mcptest.Response {
				return mcptest.JSON(`{"got":` + string(args) + `}`)
			}})
			if res, err := call(t.Context()); err != nil || string(res.Content) != `{"got":{"a":1}}` {
				t.Errorf("got %s, %v", res.Content, err)
			}
			s.SetResponse("t", mcptest.Response{Code: -32000, Text: "busy"})
			var refused *v1.MCPError
			if _, err := call(t.Context()); !errors.As(err, &refused) || refused.Code != -32000 || refused.Message != "busy" {
				t.Errorf("got %v", err)
			}
			s.SetResponse("t", mcptest.Text("late"))
			s.Delay("t", time.Hour)
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if _, err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("delayed: %v", err)
			}
			s.SetResponse("t", mcptest.Response{Handler: func(context.Context, json.RawMessage) mcptest.Response {
				s.DropConnection()
				return mcptest.Text("nobody hears this")
			}})
			s.Delay("t", 0)
			if _, err := call(t.Context()); !errors.As(err, &refused) || refused.Code != 0 {
				t.Errorf("dropped: %v", err)
			}
			s.SetResponse("t", mcptest.Text("again"))
			if res, err := call(t.Context()); err != nil || string(res.Content) != `"again"` {
				t.Errorf("after the drop: %s, %v", res.Content, err)
			}
			s.AddTool(mcptest.Tool{Name: "u"}, mcptest.Text(""))
			select {
			case <-changes:
			case <-time.After(5 * time.Second):
				t.Error("the new tool was not noticed")
			}
			if n := len(s.Calls("t")); n != 5 && n != 6 { // the delayed call may end before it arrives
				t.Errorf("%d calls", n)
			}
		})
	}
}

// Some servers answer a cancelled call with an error. The caller still gets its own deadline error,
// whichever comes first.
func TestTheDeadlineIsTheCallersOwn(t *testing.T) {
	s := mcptest.NewServer("s")
	defer s.Close()
	s.AddTool(mcptest.Tool{Name: "t"}, mcptest.Text("late"))
	s.Delay("t", time.Hour)
	up := mcp.NewUpstreams([]*v1.MCPServer{s.Manifest()}, mcp.Options{Dial: s.Dial})
	defer up.Close()
	key := v1.Key{Kind: v1.KindMCPServer, Namespace: "default", Name: "s"}
	up.Discover(t.Context())
	for range 500 {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Millisecond)
		_, err := up.Call(ctx, key, "t", []byte(`{}`), false)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
	}
}

func TestMisuse(t *testing.T) {
	s := mcptest.NewServer("s")
	defer s.Close()
	for name, f := range map[string]func(){
		"no name":      func() { s.AddTool(mcptest.Tool{}, mcptest.Text("")) },
		"unknown tool": func() { s.SetResponse("x", mcptest.Text("")) },
		"wrong schema": func() { s.AddTool(mcptest.Tool{Name: "y", InputSchema: `{"type":"array"}`}, mcptest.Text("")) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}
