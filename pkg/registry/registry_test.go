package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/registry"
)

// mock is an executor that runs a function.
type mock struct {
	name string
	fn   func(ctx context.Context, t *v1.Tool, args json.RawMessage) (v1.Result, error)
}

func (m mock) Name() string { return m.name }

func (m mock) Execute(ctx context.Context, t *v1.Tool, args json.RawMessage) (v1.Result, error) {
	if m.fn == nil {
		return v1.Result{Content: t.Spec.MockResult, Attempts: 1}, nil
	}
	return m.fn(ctx, t, args)
}

func newTool(name string, edit ...func(*v1.Tool)) *v1.Tool {
	t := &v1.Tool{Header: v1.Header{APIVersion: v1.APIVersion, Kind: v1.KindTool, Metadata: v1.Metadata{Name: name}}}
	t.Spec.Description = "a tool"
	t.Spec.InputSchema = json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city"],"additionalProperties":false}`)
	t.Spec.MockResult = json.RawMessage(`{"ok":true}`)
	for _, e := range edit {
		e(t)
	}
	return t
}

func inNamespace(ns string) func(*v1.Tool) { return func(t *v1.Tool) { t.Metadata.Namespace = ns } }

func newPolicy(name string, spec v1.ToolPolicySpec) *v1.ToolPolicy {
	return &v1.ToolPolicy{Header: v1.Header{APIVersion: v1.APIVersion, Kind: v1.KindToolPolicy, Metadata: v1.Metadata{Name: name}}, Spec: spec}
}

func newRegistry(t *testing.T, o registry.Options, objects ...v1.Object) *registry.Registry {
	t.Helper()
	if o.Executors == nil {
		o.Executors = []registry.Executor{mock{name: "mock"}}
	}
	r, err := registry.New(objects, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func oslo(name string) v1.Call {
	return v1.Call{Tool: name, Args: json.RawMessage(`{"city":"Oslo"}`)}
}

func TestExecute(t *testing.T) {
	limit := func(n int64) *int64 { return &n }
	tests := []struct {
		name     string
		tool     *v1.Tool
		policy   *v1.ToolPolicySpec
		executor mock
		call     v1.Call
		want     string // the content
		wantErr  string
		wantType string // the type of the result's error
	}{
		{name: "a static result", tool: newTool("weather"), call: oslo("weather"), want: `{"ok":true}`},
		{name: "no arguments are an empty object", tool: newTool("weather"), call: v1.Call{Tool: "weather"},
			wantErr: `tool "weather": invalid arguments: /city: required property "city" is missing`, wantType: v1.ArgsInvalid},
		{name: "arguments that are no object", tool: newTool("weather"), call: v1.Call{Tool: "weather", Args: json.RawMessage(`[1]`)},
			wantErr: `the arguments must be a JSON object, got array`, wantType: v1.ArgsInvalid},
		{name: "arguments that are not valid JSON", tool: newTool("weather"), call: v1.Call{Tool: "weather", Args: json.RawMessage(`{"city"`)},
			wantErr: `the arguments are not JSON`, wantType: v1.ArgsInvalid},
		{name: "arguments with a number out of range", tool: newTool("weather"), call: v1.Call{Tool: "weather", Args: json.RawMessage(`{"city":1e999}`)},
			wantErr: `the arguments are not usable: at line 1, column 9: number beyond the range of a double`, wantType: v1.ArgsInvalid},
		{name: "arguments are coerced before the executor sees them", tool: newTool("weather"),
			executor: mock{fn: func(_ context.Context, _ *v1.Tool, args json.RawMessage) (v1.Result, error) {
				return v1.Result{Content: args}, nil
			}},
			call: v1.Call{Tool: "weather", Args: json.RawMessage(`{"city":"Oslo","days":"9007199254740993"}`)}, want: `{"city":"Oslo","days":9007199254740993}`},
		{name: "coerce false leaves them to validation", tool: newTool("weather", func(t *v1.Tool) { t.Spec.Validation = &v1.Validation{Coerce: new(bool)} }),
			call:    v1.Call{Tool: "weather", Args: json.RawMessage(`{"city":"Oslo","days":"5"}`)},
			wantErr: `/days: `, wantType: v1.ArgsInvalid},
		{name: "validation args warn lets them through", tool: newTool("weather", func(t *v1.Tool) { t.Spec.Validation = &v1.Validation{Args: v1.Warn} }),
			call: v1.Call{Tool: "weather"}, want: `{"ok":true}`},
		{name: "a result that breaks the output schema", tool: newTool("weather", func(t *v1.Tool) { t.Spec.OutputSchema = json.RawMessage(`{"required":["temp"]}`) }),
			call: oslo("weather"), wantErr: `tool "weather": invalid result: /temp: `, wantType: v1.ResultInvalid},
		{name: "validation result off lets it through", tool: newTool("weather", func(t *v1.Tool) {
			t.Spec.OutputSchema = json.RawMessage(`{"required":["temp"]}`)
			t.Spec.Validation = &v1.Validation{Result: v1.Off}
		}), call: oslo("weather"), want: `{"ok":true}`},
		{name: "a broken input schema is the manifest's error", tool: newTool("weather", func(t *v1.Tool) { t.Spec.InputSchema = json.RawMessage(`{"type":"object","properties":5}`) }),
			call: oslo("weather"), wantErr: `tool "weather": invalid manifest: /spec/input_schema`, wantType: v1.ManifestInvalid},
		{name: "an executor that panics", tool: newTool("weather"),
			executor: mock{fn: func(context.Context, *v1.Tool, json.RawMessage) (v1.Result, error) { panic("boom") }},
			call:     oslo("weather"), wantErr: `the mock executor panicked: boom`, wantType: v1.TypeExecutionFailed},
		{name: "policy refuses", tool: newTool("weather"), policy: &v1.ToolPolicySpec{MaxTotalToolCalls: limit(0)}, call: oslo("weather"),
			wantErr: `tool "weather": refused by policy "p", rule max_total_tool_calls: `, wantType: v1.TypePolicyRefused},
		{name: "arguments come before policy", tool: newTool("weather"), policy: &v1.ToolPolicySpec{ToolChoice: v1.ToolChoiceNone}, call: v1.Call{Tool: "weather"},
			wantErr: `invalid arguments`, wantType: v1.ArgsInvalid},
		{name: "redaction is the last thing", tool: newTool("weather", func(t *v1.Tool) {
			t.Spec.MockResult = json.RawMessage(`{"user":{"token":"s3cret","name":"Ada"}}`)
			t.Spec.OutputSchema = json.RawMessage(`{"properties":{"user":{"properties":{"token":{"pattern":"^s3"}}}}}`)
			t.Spec.Redact = []string{"token"}
		}), call: oslo("weather"), want: `{"user":{"token":"[REDACTED]","name":"Ada"}}`},
		{name: "a error in a result holds no secret", tool: newTool("weather", func(t *v1.Tool) {
			t.Spec.MockResult = json.RawMessage(`{"token":"s3cret"}`)
			t.Spec.OutputSchema = json.RawMessage(`{"properties":{"token":{"type":"integer"}}}`)
			t.Spec.Redact = []string{"/token"}
		}), call: oslo("weather"), wantErr: `got [REDACTED]`, wantType: v1.ResultInvalid},
		{name: "the redaction of an HTTP block comes after validation too", tool: newTool("weather", func(t *v1.Tool) {
			t.Spec.Mode, t.Spec.HTTP = v1.ModeMock, &v1.HTTPSpec{URL: "https://example.com", Redact: []string{"pin"}}
			t.Spec.MockResult = json.RawMessage(`{"pin":1234}`)
			t.Spec.OutputSchema = json.RawMessage(`{"properties":{"pin":{"type":"integer"}}}`)
		}), call: oslo("weather"), want: `{"pin":"[REDACTED]"}`},
		{name: "a error at the parent of a secret holds no secret", tool: newTool("weather", func(t *v1.Tool) {
			t.Spec.MockResult = json.RawMessage(`{"user":{"token":"s3cret"},"list":[{"token":"s3cret"}]}`)
			t.Spec.OutputSchema = json.RawMessage(`{"properties":{"user":{"enum":[1,2]},"list":{"uniqueItems":true,"items":{"const":{"a":1}},"maxItems":0}}}`)
			t.Spec.Redact = []string{"token"}
		}), call: oslo("weather"), wantErr: `/user: `, wantType: v1.ResultInvalid},
		{name: "no executor", tool: newTool("weather", func(t *v1.Tool) { t.Spec.HTTP = &v1.HTTPSpec{URL: "https://example.com"} }), call: oslo("weather"),
			wantErr: `no executor for mode "live"`, wantType: v1.ManifestInvalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			objects := []v1.Object{tt.tool}
			if tt.policy != nil {
				objects = append(objects, newPolicy("p", *tt.policy))
			}
			tt.executor.name = "mock"
			r := newRegistry(t, registry.Options{Executors: []registry.Executor{tt.executor}}, objects...)
			res, err := r.Execute(t.Context(), tt.call)
			if tt.wantErr == "" {
				if err != nil || res.Status != v1.StatusComplete || string(res.Content) != tt.want {
					t.Fatalf("got %s %s, %v; want %s", res.Status, res.Content, err, tt.want)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
				t.Fatalf("got error %v; want %q", err, tt.wantErr)
			}
			if strings.Contains(err.Error()+fmt.Sprintf("%+v", res.Error), "s3cret") {
				t.Error("the error holds a secret")
			}
			if res.Status != v1.StatusFailed || res.Error == nil || res.Error.Type != tt.wantType || res.Content != nil {
				t.Errorf("got result %+v; want a failed one of type %s without content", res, tt.wantType)
			}
		})
	}
}

func TestLookup(t *testing.T) {
	remote := func(name, server, tool string) *v1.Tool {
		return newTool(name, func(t *v1.Tool) { t.Spec.MCP = &v1.MCPToolSpec{Server: server, Tool: tool} })
	}
	server := func(name string) v1.Object {
		return &v1.MCPServer{Header: v1.Header{APIVersion: v1.APIVersion, Kind: v1.KindMCPServer, Metadata: v1.Metadata{Name: name}}, Spec: v1.MCPServerSpec{Command: "x"}}
	}
	r := newRegistry(t, registry.Options{Executors: []registry.Executor{mock{name: "mock"}, mock{name: "mcp"}}},
		newTool("weather"), newTool("twice"), newTool("twice", inNamespace("prod")), newTool("only-prod", inNamespace("prod")),
		server("fs"), server("git"), remote("my-read", "fs", "read"), remote("fs-status", "fs", "status"), remote("git-status", "git", "status"), newTool("status-page"))
	tests := []struct {
		name, namespace, ask, want, wantErr string
	}{
		{name: "a name", ask: "weather", want: "default/weather"},
		{name: "a name of another namespace", ask: "only-prod", want: "prod/only-prod"},
		{name: "namespace and name", ask: "prod/twice", want: "prod/twice"},
		{name: "a name within a namespace", namespace: "prod", ask: "twice", want: "prod/twice"},
		{name: "a name that fits two", ask: "twice", wantErr: `tool "twice" is ambiguous: it matches default/twice and prod/twice`},
		{name: "server and tool", ask: "fs__read", want: "default/my-read"},
		{name: "server and tool with a dot", ask: "fs.read", want: "default/my-read"},
		{name: "a bare name that one server has", ask: "read", want: "default/my-read"},
		{name: "a bare name that two servers have", ask: "status", wantErr: `it matches default/fs-status and default/git-status`},
		{name: "a near miss", ask: "wether", wantErr: `tool "wether" not found; did you mean "weather"?`},
		{name: "a near miss of what a server calls it", ask: "staus", wantErr: `did you mean "status"?`},
		{name: "a near miss behind mcp__", ask: "mcp__wether", wantErr: `did you mean "weather"?`},
		{name: "no near miss", ask: "zzzzzz", wantErr: `tool "zzzzzz" not found`},
		{name: "the wrong namespace", namespace: "default", ask: "only-prod", wantErr: `did you mean "prod/only-prod"?`},
		{name: "two namespaces that differ", namespace: "default", ask: "prod/twice", wantErr: "not found"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			it, err := r.Lookup(tt.namespace, tt.ask)
			if tt.wantErr != "" {
				var nf *v1.NotFoundError
				if !errors.As(err, &nf) || !strings.Contains(err.Error(), tt.wantErr) {
					t.Fatalf("got %v; want %q", err, tt.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if h := it.Object.Head(); h.Namespace()+"/"+h.Metadata.Name != tt.want {
				t.Errorf("got %s; want %s", h.Key(), tt.want)
			}
		})
	}
}

func TestBrokenObjectsHideNothing(t *testing.T) {
	broken := newTool("broken", func(t *v1.Tool) { t.Spec.Description = "" })
	orphan := newTool("orphan", func(t *v1.Tool) { t.Spec.MCP = &v1.MCPToolSpec{Server: "gone"} })
	r := newRegistry(t, registry.Options{Executors: []registry.Executor{mock{name: "mock"}, mock{name: "mcp"}}}, broken, orphan, newTool("good"), newTool("same"), newTool("same"))
	page, err := r.List(registry.Query{Kind: v1.KindTool})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, it := range page.Items {
		got[it.Object.Head().Metadata.Name] = it.Reason()
	}
	want := map[string]string{
		"broken": `spec.description: required field "description" is missing`,
		"orphan": `spec.mcp.server: no MCPServer "gone" in namespace "default"`,
		"good":   "",
		"same":   `metadata.name: Tool default/same is declared twice: at Tool default/same and at Tool default/same`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if _, err := r.Execute(t.Context(), oslo("good")); err != nil {
		t.Error(err)
	}
	if _, err := r.Execute(t.Context(), oslo("broken")); err == nil || !strings.Contains(err.Error(), "invalid manifest") {
		t.Errorf("got %v", err)
	}
}

// A manifest still loads if it has a problem that PromptKit reports only for calls.
func TestPromptKitViolationsAreWarnings(t *testing.T) {
	promptKit := func(name string, edit func(*v1.Tool)) *v1.Tool {
		return newTool(name, func(t *v1.Tool) { t.APIVersion = "promptkit.altairalabs.ai/v1" }, edit)
	}
	r := newRegistry(t, registry.Options{Executors: []registry.Executor{mock{name: "mock"}, mock{name: "http"}}},
		promptKit("live", func(t *v1.Tool) { t.Spec.Mode = "live" }),
		promptKit("other", func(t *v1.Tool) { t.Spec.Mode = "my-executor" }),
		promptKit("result", func(t *v1.Tool) { t.Spec.OutputSchema = json.RawMessage(`{"type":"string"}`) }),
		promptKit("schema", func(t *v1.Tool) { t.Spec.OutputSchema = json.RawMessage(`{"type":"strin"}`) }),
		promptKit("client", func(t *v1.Tool) { t.Spec.Mode = "client" }),
	)
	var got []string
	for _, f := range r.Check(t.Context()) {
		s := v1.FieldPath(f.Path) + ": " + f.Message
		if f.IsWarning() {
			s = "warning: " + s
		}
		got = append(got, s)
	}
	want := []string{
		`warning: spec.mode: mode live needs spec.http`,
		`warning: spec.mode: no executor for mode "my-executor"`,
		`warning: spec.mock_result: the mock result violates output_schema: expected string, got object with 1 property`,
		`spec.output_schema.type: expected array or one of "array", "boolean", "integer", "null", "number", "object", "string", got string "strin"; did you mean "string"?`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for name, ready := range map[string]bool{"live": false, "other": false, "result": false, "schema": false, "client": true} {
		it, err := r.Get(v1.KindTool, "", name)
		if err != nil || it.Ready != ready {
			t.Errorf("%s: ready %t, %v, want %t", name, it.Ready, err, ready)
		}
	}
	if _, err := r.Execute(t.Context(), oslo("client")); err != nil {
		t.Error(err)
	}
}

func TestABrokenPolicyFailsClosed(t *testing.T) {
	bad := newPolicy("p", v1.ToolPolicySpec{Blocklist: []string{"a*b"}})
	r := newRegistry(t, registry.Options{}, bad, newTool("here"), newTool("there", inNamespace("prod")))
	_, err := r.Execute(t.Context(), oslo("here"))
	var invalid *v1.ValidationError
	if !errors.As(err, &invalid) || !strings.Contains(err.Error(), `policy "p" is broken and might have refused the call`) {
		t.Errorf("a tool of the policy's namespace: got %v", err)
	}
	if _, err := r.Execute(t.Context(), oslo("there")); err != nil {
		t.Errorf("a tool of another namespace: got %v", err)
	}
}

func TestRegisterAndUnregister(t *testing.T) {
	r := newRegistry(t, registry.Options{}, newTool("a"))
	if err := r.Register(newTool("b"), newTool("a")); err == nil || err.Error() != "registry: Tool default/a is registered already" {
		t.Errorf("a second a: got %v", err)
	}
	if err := r.Register(newTool("c", func(t *v1.Tool) { t.Spec.InputSchema = nil })); err == nil || !strings.Contains(err.Error(), "input_schema") {
		t.Errorf("a broken tool: got %v", err)
	}
	if n := len(r.Objects()); n != 1 {
		t.Fatalf("a refused Register changed the set: %d objects", n)
	}
	if err := r.Register(newTool("b")); err != nil {
		t.Fatal(err)
	}
	if err := r.Unregister(v1.Key{Kind: v1.KindTool, Namespace: "default", Name: "a"}, v1.Key{Kind: v1.KindTool, Namespace: "default", Name: "zz"}); err == nil {
		t.Error("unregistered what is not there")
	}
	if err := r.Unregister(v1.Key{Kind: v1.KindTool, Namespace: "default", Name: "a"}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Execute(t.Context(), oslo("a")); err == nil {
		t.Error("an unregistered tool was called")
	}
	if _, err := r.Execute(t.Context(), oslo("b")); err != nil {
		t.Error(err)
	}
}

func TestTwoExecutorsOfOneName(t *testing.T) {
	_, err := registry.New(nil, registry.Options{Executors: []registry.Executor{mock{name: "x"}, mock{name: "x"}}})
	if err == nil || err.Error() != `registry: two executors are named "x"` {
		t.Errorf("got %v", err)
	}
}

// A running call keeps its set, and concurrent reloads cause no race.
func TestReplaceWhileCalling(t *testing.T) {
	r := newRegistry(t, registry.Options{}, newTool("a"))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				if _, err := r.Execute(t.Context(), oslo("a")); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 50 {
		r.Replace([]v1.Object{newTool("a"), newTool("b")})
	}
	wg.Wait()
}

func TestTimeouts(t *testing.T) {
	waits := mock{name: "mock", fn: func(ctx context.Context, _ *v1.Tool, _ json.RawMessage) (v1.Result, error) {
		<-ctx.Done()
		return v1.Result{}, context.Cause(ctx)
	}}
	tests := []struct {
		name    string
		spec    int
		caller  time.Duration
		want    time.Duration
		message string
	}{
		{name: "the default", want: 30 * time.Second, message: `tool "slow": timed out after 30s`},
		{name: "the tool's", spec: 1500, want: 1500 * time.Millisecond, message: `tool "slow": timed out after 1.5s`},
		{name: "the caller's when shorter", spec: 1500, caller: time.Second, want: time.Second, message: `tool "slow": timed out after 1s`},
		{name: "the tool's when shorter", spec: 1500, caller: time.Minute, want: 1500 * time.Millisecond, message: `tool "slow": timed out after 1.5s`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRegistry(t, registry.Options{Executors: []registry.Executor{waits}}, newTool("slow", func(tool *v1.Tool) { tool.Spec.TimeoutMS = tt.spec }))
				began := time.Now()
				call := oslo("slow")
				call.Timeout = tt.caller
				res, err := r.Execute(t.Context(), call)
				var exec *v1.ExecutionError
				if !errors.As(err, &exec) || exec.Phase != v1.PhaseTimeout || err.Error() != tt.message {
					t.Errorf("got %v; want %s", err, tt.message)
				}
				if took := time.Since(began); took != tt.want {
					t.Errorf("took %s; want %s", took, tt.want)
				}
				if res.Error.Type != v1.TypeTimeout {
					t.Errorf("got type %s", res.Error.Type)
				}
			})
		})
	}
}

func TestCancellingTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := make(chan struct{})
		r := newRegistry(t, registry.Options{Executors: []registry.Executor{mock{name: "mock", fn: func(ctx context.Context, _ *v1.Tool, _ json.RawMessage) (v1.Result, error) {
			close(started)
			<-ctx.Done()
			return v1.Result{}, ctx.Err()
		}}}}, newTool("slow"))
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-started; cancel() }()
		began := time.Now()
		res, err := r.Execute(ctx, oslo("slow"))
		if !errors.Is(err, context.Canceled) || res.Error.Type != v1.TypeCancelled {
			t.Errorf("got %v, %+v", err, res.Error)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("took %s", took)
		}
	})
}

// A call whose executor never ran releases its reservations.
func TestBudgetOfCallsThatNeverRan(t *testing.T) {
	one := int64(1)
	r := newRegistry(t, registry.Options{}, newTool("a"), newPolicy("p", v1.ToolPolicySpec{MaxTotalToolCalls: &one}))
	call := oslo("a")
	call.Session = "s"
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Execute(ctx, call); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	bad := call
	bad.Args = nil
	if _, err := r.Execute(t.Context(), bad); err == nil {
		t.Fatal("wrong arguments were accepted")
	}
	if _, err := r.Execute(t.Context(), call); err != nil {
		t.Fatalf("the first call that runs: %v", err)
	}
	var refused *v1.PolicyError
	if _, err := r.Execute(t.Context(), call); !errors.As(err, &refused) || refused.Limit != 1 || refused.Used != 1 {
		t.Fatalf("the second: got %v", err)
	}
}

func TestExecuteAll(t *testing.T) {
	three := int64(3)
	var running, most atomic.Int64
	var gate sync.WaitGroup
	gate.Add(2)
	r := newRegistry(t, registry.Options{Parallel: 2, Executors: []registry.Executor{mock{name: "mock", fn: func(_ context.Context, _ *v1.Tool, args json.RawMessage) (v1.Result, error) {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		if strings.Contains(string(args), "meet") { // two calls that wait for each other run in parallel
			gate.Done()
			gate.Wait()
		}
		if strings.Contains(string(args), "fail") {
			return v1.Result{}, &v1.ExecutionError{Tool: "a", Phase: v1.PhaseExecute, Message: "no"}
		}
		return v1.Result{Content: args}, nil
	}}}}, newTool("a"), newPolicy("p", v1.ToolPolicySpec{MaxTotalToolCalls: &three}))
	args := func(city string) v1.Call {
		return v1.Call{Tool: "a", Args: json.RawMessage(`{"city":"` + city + `"}`)}
	}
	got := r.ExecuteAll(t.Context(), []v1.Call{args("meet 1"), args("meet 2"), {Tool: "nope"}, args("fail"), args("late")})
	want := []string{`{"city":"meet 1"}`, `{"city":"meet 2"}`, v1.TypeNotFound, v1.TypeExecutionFailed, v1.TypePolicyRefused}
	for i, o := range got {
		s := string(o.Result.Content)
		if o.Err != nil {
			s = o.Result.Error.Type
		}
		if s != want[i] {
			t.Errorf("call %d: got %s, %v; want %s", i, s, o.Err, want[i])
		}
	}
	if most.Load() > 2 {
		t.Errorf("%d calls ran at once; the bound is 2", most.Load())
	}
}

type auditLog struct {
	mu    sync.Mutex
	lines []v1.AuditRecord
}

func (a *auditLog) AppendAudit(_ context.Context, r v1.AuditRecord) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lines = append(a.lines, r)
	return nil
}

func TestAudit(t *testing.T) {
	zero := int64(0)
	var log auditLog
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := newRegistry(t, registry.Options{Audit: &log, Now: func() time.Time { return now }},
		newTool("a", func(t *v1.Tool) { t.Spec.Redact = []string{"city"} }), newTool("pay"),
		newPolicy("p", v1.ToolPolicySpec{Limits: []v1.Limit{{Tools: []string{"pay"}, MaxCalls: &zero, Per: v1.PerSession}}}))
	for _, c := range []v1.Call{
		{ID: "1", Tool: "a", Session: "s", Turn: "t", Args: json.RawMessage(`{"city":"secret"}`)},
		{ID: "2", Tool: "a", Args: json.RawMessage(`{}`)},
		{ID: "3", Tool: "pay", Args: json.RawMessage(`{"city":"x"}`)},
		{ID: "4", Tool: "none"},
	} {
		_, _ = r.Execute(t.Context(), c) // the test checks only the audit log
	}
	type line struct{ ID, Tool, Args, Status, Error, Decision string }
	var got []line
	for _, l := range log.lines {
		d := ""
		if l.Policy != nil {
			d = l.Policy.Decision
		}
		if !l.Time.Equal(now) || len(l.ArgsHash) != 64 {
			t.Errorf("line %+v", l)
		}
		got = append(got, line{l.CallID, l.Tool, string(l.Args), l.Status, l.ErrorType, d})
	}
	want := []line{
		{"1", "a", `{"city":"[REDACTED]"}`, "started", "", "allow"},
		{"1", "a", `{"city":"[REDACTED]"}`, "complete", "", "allow"},
		{"2", "a", `{}`, "failed", "args_invalid", ""},
		{"3", "pay", `{"city":"x"}`, "failed", "policy_refused", "deny"},
		{"4", "none", ``, "failed", "not_found", ""},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestList(t *testing.T) {
	labelled := func(k, v string) func(*v1.Tool) {
		return func(t *v1.Tool) { t.Metadata.Labels = map[string]string{k: v} }
	}
	r := newRegistry(t, registry.Options{}, newTool("b", labelled("team", "pay")), newTool("a"), newTool("c", inNamespace("prod"), labelled("team", "ops")), newPolicy("p", v1.ToolPolicySpec{}))
	tests := []struct {
		name  string
		query registry.Query
		want  string
		total int
	}{
		{"everything, sorted by kind, namespace, name", registry.Query{}, "a b c p", 4},
		{"a kind", registry.Query{Kind: v1.KindToolPolicy}, "p", 1},
		{"a namespace", registry.Query{Namespace: "prod"}, "c", 1},
		{"a name", registry.Query{Name: "b"}, "b", 1},
		{"a pattern", registry.Query{Name: "*"}, "a b c p", 4},
		{"a label", registry.Query{Selector: "team=pay"}, "b", 1},
		{"not a label", registry.Query{Kind: v1.KindTool, Selector: "team!=pay"}, "a c", 2},
		{"a set", registry.Query{Selector: "team in (pay, ops)"}, "b c", 2},
		{"no key", registry.Query{Selector: "!team"}, "a p", 2},
		{"a page", registry.Query{Limit: 2, Offset: 1}, "b c", 4},
		{"past the end", registry.Query{Offset: 9}, "", 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := r.List(tt.query)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, it := range p.Items {
				names = append(names, it.Object.Head().Metadata.Name)
			}
			if got := strings.Join(names, " "); got != tt.want || p.Total != tt.total {
				t.Errorf("got %q of %d; want %q of %d", got, p.Total, tt.want, tt.total)
			}
		})
	}
	if _, err := r.List(registry.Query{Selector: "a b c"}); err == nil || !strings.Contains(err.Error(), `cannot read "a b c"`) {
		t.Errorf("a malformed selector: got %v", err)
	}
}

func TestPlanCountsNothing(t *testing.T) {
	one := int64(1)
	r := newRegistry(t, registry.Options{}, newTool("a"), newPolicy("p", v1.ToolPolicySpec{MaxTotalToolCalls: &one}))
	call := oslo("a")
	call.Session = "s"
	for range 3 {
		p, err := r.Plan(t.Context(), call)
		if err != nil || p.Executor != "mock" || p.Policy.Decision != v1.DecisionAllow {
			t.Fatalf("got %+v, %v", p, err)
		}
	}
	if _, err := r.Execute(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	var refused *v1.PolicyError
	if _, err := r.Plan(t.Context(), call); !errors.As(err, &refused) || refused.Limit != 1 || refused.Used != 1 {
		t.Errorf("got %v", err)
	}
}
