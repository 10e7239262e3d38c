package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/mcp/server"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

func toJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestListToolsSaysWhatTheManifestSays(t *testing.T) {
	yes, no := true, false
	c := catalogOf(
		offer("", "get-weather", func(o *server.Offer) {
			o.Tool.Spec.Hints = &v1.Hints{Title: "Weather", ReadOnly: &yes, OpenWorld: &no}
			o.Tool.Spec.InputSchema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993},"z":{},"a":{"const":"<&>"}}}`)
			o.Tool.Spec.OutputSchema = json.RawMessage(`{"type":"object","required":["t"]}`)
		}),
		offer("", "bare", func(o *server.Offer) { o.Tool.Spec.InputSchema = json.RawMessage(` { } `) }),
		offer("", "list", func(o *server.Offer) {
			o.Tool.Spec.InputSchema = json.RawMessage(`{"properties":{"a":{}}}`)
			o.Tool.Spec.OutputSchema = json.RawMessage(`{"type":"array"}`)
		}),
		offer("", "ref", func(o *server.Offer) {
			o.Tool.Spec.OutputSchema = json.RawMessage(`{"$ref":"#/$defs/A","$defs":{"A":{"$ref":"#/$defs/B"},"B":{"type":"object"}}}`)
		}),
		offer("", "ref-list", func(o *server.Offer) {
			o.Tool.Spec.OutputSchema = json.RawMessage(`{"$ref":"#/definitions/A","definitions":{"A":{"type":"array"}}}`)
		}),
		offer("", "ref-round", func(o *server.Offer) {
			o.Tool.Spec.OutputSchema = json.RawMessage(`{"$ref":"#/$defs/A","$defs":{"A":{"$ref":"#/$defs/A"}}}`)
		}),
		offer("", "blocked", func(o *server.Offer) { o.Hidden = true }),
	)
	const defs = `{"description":"does %s","inputSchema":{"type":"object"},"name":"%[1]s"%s}`
	modern := []string{
		fmt.Sprintf(defs, "ref", `,"outputSchema":{"$defs":{"A":{"$ref":"#/$defs/B"},"B":{"type":"object"}},"$ref":"#/$defs/A"}`),
		fmt.Sprintf(defs, "ref-list", `,"outputSchema":{"$ref":"#/definitions/A","definitions":{"A":{"type":"array"}}}`),
		fmt.Sprintf(defs, "ref-round", `,"outputSchema":{"$defs":{"A":{"$ref":"#/$defs/A"}},"$ref":"#/$defs/A"}`),
	}
	sessions := []string{ // these versions allow only the root type object
		fmt.Sprintf(defs, "ref", `,"outputSchema":{"$defs":{"A":{"$ref":"#/$defs/B"},"B":{"type":"object"}},"$ref":"#/$defs/A","type":"object"}`),
		fmt.Sprintf(defs, "ref-list", ""), fmt.Sprintf(defs, "ref-round", ""),
	}
	common := []string{
		`{"description":"does bare","inputSchema":{"type":"object"},"name":"bare"}`,
		`{"annotations":{"idempotentHint":false,"openWorldHint":false,"readOnlyHint":true},"description":"does get-weather",` +
			`"inputSchema":{"properties":{"a":{"const":"<&>"},"n":{"maximum":9007199254740993,"type":"integer"},"z":{}},"type":"object"},"name":"get-weather",` +
			`"outputSchema":{"required":["t"],"type":"object"},"title":"Weather"}`,
	}
	want := map[string][]string{
		"modern":   slices.Concat(common, []string{`{"description":"does list","inputSchema":{"properties":{"a":{}},"type":"object"},"name":"list","outputSchema":{"type":"array"}}`}, modern),
		"sessions": slices.Concat(common, []string{`{"description":"does list","inputSchema":{"properties":{"a":{}},"type":"object"},"name":"list"}`}, sessions),
	}
	for protocol, version := range versions {
		t.Run(protocol, func(t *testing.T) {
			cs := overStdio(t, server.New(c, server.Options{}), version, nil)
			res, err := cs.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, tool := range res.Tools {
				var sorted any
				d := json.NewDecoder(strings.NewReader(toJSON(t, tool)))
				d.UseNumber()
				if err := d.Decode(&sorted); err != nil {
					t.Fatal(err)
				}
				got = append(got, strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&", "9007199254740992", "9007199254740993").Replace(toJSON(t, sorted)))
			}
			if d := cmp.Diff(want[protocol], got); d != "" {
				t.Error(d)
			}
			if cs.InitializeResult().ProtocolVersion != version {
				t.Errorf("version %s", cs.InitializeResult().ProtocolVersion)
			}
		})
	}
}

func TestPagesAreInOrderAndSurviveChanges(t *testing.T) {
	c := catalogOf()
	var all []server.Offer
	for i := range 10 {
		all = append(all, offer("", fmt.Sprintf("t%02d", 9-i)))
	}
	c.set(all...)
	s := server.New(c, server.Options{PageSize: 3})
	cs := overStdio(t, s, versions["sessions"], nil)
	var got []string
	cursor := ""
	for page := 0; ; page++ {
		res, err := cs.ListTools(t.Context(), &sdk.ListToolsParams{Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range res.Tools {
			got = append(got, tool.Name)
		}
		if page == 0 { // the last tool of the first page is removed, and one is added before it
			c.set(append(slices.DeleteFunc(slices.Clone(all), func(o server.Offer) bool { return o.Tool.Metadata.Name == "t02" }), offer("", "t00b"))...)
			s.Refresh()
		}
		if cursor = res.NextCursor; cursor == "" {
			break
		}
	}
	if d := cmp.Diff([]string{"t00", "t01", "t02", "t03", "t04", "t05", "t06", "t07", "t08", "t09"}, got); d != "" {
		t.Error(d)
	}
	_, err := cs.ListTools(t.Context(), &sdk.ListToolsParams{Cursor: "%"})
	wantCode(t, err, jsonrpc.CodeInvalidParams)
}

func wantCode(t testing.TB, err error, code int64) {
	t.Helper()
	var rpc *jsonrpc.Error
	if !errors.As(err, &rpc) || rpc.Code != code {
		t.Errorf("got %v, want code %d", err, code)
	}
}

func TestCallReachesTheCatalog(t *testing.T) {
	for protocol, version := range versions {
		t.Run(protocol, func(t *testing.T) {
			c := catalogOf(offer("a", "get"), offer("b", "get"))
			calls := make(chan v1.Call, 1)
			c.do = func(_ context.Context, call v1.Call) (v1.Result, error) {
				calls <- call
				return v1.Result{Status: v1.StatusComplete, Content: json.RawMessage(`"hello"`)}, nil
			}
			out := &logs{}
			cs := overStdio(t, server.New(c, server.Options{Logger: out.logger(), AccessLog: out.logger()}), version, nil)
			res, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "b__get", Arguments: json.RawMessage(`{"big":9007199254740993,"s":"secret"}`), Meta: sdk.Meta{"toolctl.dev/turn": "7"}})
			if err != nil {
				t.Fatal(err)
			}
			if got := toJSON(t, res.Content); got != `[{"type":"text","text":"hello"}]` || res.IsError || res.StructuredContent != nil {
				t.Errorf("got %s", toJSON(t, res))
			}
			call := <-calls
			if call.Tool != "b/get" || string(call.Args) != `{"big":9007199254740993,"s":"secret"}` || call.Turn != "7" || call.ID == "" || !strings.HasPrefix(call.Session, "stdio-") {
				t.Errorf("got %+v", call)
			}
			if line := out.String(); !strings.Contains(line, `"call_id":"`+call.ID+`","tool":"b/get"`) || strings.Contains(line, "secret") {
				t.Errorf("log: %s", line)
			}
			_, err = cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "get"})
			wantCode(t, err, jsonrpc.CodeInvalidParams)
			_, err = cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "b__get", Meta: sdk.Meta{"toolctl.dev/turn": 7}})
			wantCode(t, err, jsonrpc.CodeInvalidParams)
		})
	}
}

func TestPanicsEndOneCallOnly(t *testing.T) {
	c := catalogOf(offer("", "do"))
	c.do = func(context.Context, v1.Call) (v1.Result, error) { panic("secret-free text") }
	out := &logs{}
	s := server.New(c, server.Options{Logger: out.logger(), AccessLog: out.logger()})
	cs := overStdio(t, s, versions["modern"], nil)
	for range 2 {
		res, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "do"})
		if err != nil || !res.IsError || !strings.Contains(toJSON(t, res.Content), "internal error; call ") {
			t.Errorf("got %v, %v", res, err)
		}
	}
	c.settle = func(context.Context) { panic("in a list") }
	_, err := cs.ListTools(t.Context(), nil)
	wantCode(t, err, jsonrpc.CodeInternalError)
	if !strings.Contains(out.String(), "in a list") {
		t.Errorf("log: %s", out)
	}
}

func TestCancellationReachesTheCall(t *testing.T) {
	for protocol, version := range versions {
		t.Run(protocol, func(t *testing.T) {
			c := catalogOf(offer("", "wait"))
			began, ended := make(chan struct{}), make(chan error, 1)
			c.do = func(ctx context.Context, _ v1.Call) (v1.Result, error) {
				close(began)
				<-ctx.Done()
				ended <- ctx.Err()
				return v1.Result{}, ctx.Err()
			}
			cs := overStdio(t, server.New(c, server.Options{}), version, nil)
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-began; cancel() }()
			if _, err := cs.CallTool(ctx, &sdk.CallToolParams{Name: "wait"}); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("the call ended with %v", err)
			}
		})
	}
}

func TestUnknownNameWaitsForTheCatalog(t *testing.T) {
	c := catalogOf()
	var s *server.Server
	var settled atomic.Int32
	c.settle = func(context.Context) {
		if settled.Add(1) == 1 { // as a server that has started would
			c.set(offer("", "late"))
			s.Refresh()
		}
	}
	s = server.New(c, server.Options{})
	cs := overStdio(t, s, versions["sessions"], nil)
	if res, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "late"}); err != nil || res.IsError {
		t.Errorf("got %v, %v", res, err)
	}
	if _, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "late"}); err != nil {
		t.Error(err)
	}
	if n := settled.Load(); n != 1 {
		t.Errorf("a known name waited: settled %d times", n)
	}
}

func TestListChangedReachesClientsOnce(t *testing.T) {
	for protocol, version := range versions {
		t.Run(protocol, func(t *testing.T) {
			c := catalogOf(offer("", "one"))
			s := server.New(c, server.Options{})
			told := make(chan struct{}, 10)
			cs := overStdio(t, s, version, &sdk.ClientOptions{ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { told <- struct{}{} }})
			s.Refresh() // nothing changed
			c.set(offer("", "one"), offer("", "two"))
			s.Refresh()
			<-told
			res, err := cs.ListTools(t.Context(), nil)
			if err != nil || len(res.Tools) != 2 {
				t.Fatalf("got %v, %v", res, err)
			}
			select {
			case <-told:
				t.Error("told twice")
			default:
			}
		})
	}
}

func TestTooManyCallsAreRefused(t *testing.T) {
	c := catalogOf(offer("", "wait"))
	began, release := make(chan struct{}), make(chan struct{})
	c.do = func(context.Context, v1.Call) (v1.Result, error) {
		close(began)
		<-release
		return v1.Result{Status: v1.StatusComplete}, nil
	}
	cs := overStdio(t, server.New(c, server.Options{Admission: admission.New(admission.Limits{MaxCalls: 1})}), versions["sessions"], nil)
	first := make(chan error, 1)
	go func() {
		_, err := cs.CallTool(context.Background(), &sdk.CallToolParams{Name: "wait"})
		first <- err
	}()
	<-began
	_, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "wait"})
	wantCode(t, err, -32000)
	close(release)
	if err := <-first; err != nil {
		t.Error(err)
	}
}

// Reports arrive in order and before the result, because a client may drop later reports.
func TestProgressComesInOrderAndBeforeTheAnswer(t *testing.T) {
	const reports = 50
	c := catalogOf(offer("", "do"))
	c.report = func(progress func(mcp.Progress)) {
		if progress == nil {
			return
		}
		for i := range reports {
			progress(mcp.Progress{Progress: float64(i + 1), Total: reports, Message: fmt.Sprint("step ", i+1)})
		}
	}
	meta := map[string]string{"sessions": `"_meta":{"progressToken":"p"},`, "modern": `"_meta":{"progressToken":"p","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},`}
	e := listen(t, server.New(c, server.Options{}), server.HTTPOptions{})
	for protocol := range versions {
		t.Run(protocol, func(t *testing.T) {
			headers := []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", wire.HeaderName, "do"}
			if protocol == "sessions" {
				res, _ := send(t, "POST", e.url+"/mcp", initialize)
				headers = []string{"Mcp-Session-Id", res.Header.Get("Mcp-Session-Id")}
			}
			_, body := send(t, "POST", e.url+"/mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{`+meta[protocol]+`"name":"do"}}`, headers...)
			var got []string
			for line := range strings.Lines(body) {
				if data, ok := strings.CutPrefix(line, "data: "); ok {
					got = append(got, strings.TrimSpace(data))
				}
			}
			if len(got) != reports+1 || !strings.Contains(got[reports], `"id":2`) {
				t.Fatalf("%d messages: %s", len(got), body)
			}
			for i := range reports {
				if want := fmt.Sprintf(`"params":{"progressToken":"p","progress":%d,"total":50,"message":"step %[1]d"}`, i+1); !strings.Contains(got[i], want) {
					t.Errorf("message %d is %s", i, got[i])
				}
			}
		})
	}
}

// The heaviest tools come first, on every page.
func TestToolsByWeight(t *testing.T) {
	weighing := func(weight int) func(*server.Offer) {
		return func(o *server.Offer) { o.Tool.Spec.Preference = &v1.Preference{Weight: weight} }
	}
	c := catalogOf(offer("default", "light", weighing(-5)), offer("default", "b"), offer("default", "heavy", weighing(1000)), offer("default", "a"), offer("default", "c", weighing(7)))
	cs := overStdio(t, server.New(c, server.Options{PageSize: 2}), "2025-11-25", nil)
	var names []string
	for tool, err := range cs.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	if got := strings.Join(names, " "); got != "heavy c a b light" {
		t.Errorf("got %s", got)
	}
}
