package v1_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "toolctl.dev/toolctl/api/v1"
)

func header(kind string) v1.Header {
	return v1.Header{APIVersion: v1.APIVersion, Kind: kind, Metadata: v1.Metadata{Name: "x"}}
}

func tool(edit func(*v1.Tool)) v1.Object {
	t := &v1.Tool{Header: header(v1.KindTool)}
	t.Spec.Description = "does it"
	t.Spec.InputSchema = json.RawMessage(`{"type":"object"}`)
	edit(t)
	return t
}

func policy(spec v1.ToolPolicySpec) v1.Object {
	return &v1.ToolPolicy{Header: header(v1.KindToolPolicy), Spec: spec}
}

func server(spec v1.MCPServerSpec) v1.Object {
	return &v1.MCPServer{Header: header(v1.KindMCPServer), Spec: spec}
}

func TestValidate(t *testing.T) {
	n := func(i int64) *int64 { return &i }
	tests := []struct {
		name   string
		object v1.Object
		want   []string
	}{
		{"a sound tool", tool(func(*v1.Tool) {}), nil},
		{"what is required", &v1.Tool{Header: v1.Header{APIVersion: v1.APIVersion, Kind: v1.KindTool}}, []string{
			`metadata.name: required field "name" is missing`,
			`spec.description: required field "description" is missing`,
			`spec.input_schema: required field "input_schema" is missing`,
		}},
		{"a name", tool(func(t *v1.Tool) { t.Metadata.Name = "Get Weather" }), []string{
			`metadata.name: "Get Weather" is not a legal name: expected lower-case letters, digits, '-', '_' and '.', starting and ending with a letter or digit, at most 253 long`,
		}},
		{"an apiVersion", tool(func(t *v1.Tool) { t.APIVersion = "v2" }), []string{`apiVersion: unknown apiVersion "v2": expected "toolctl.dev/v1"`}},
		{"labels", tool(func(t *v1.Tool) { t.Metadata.Labels = map[string]string{"a/b/c": "x", "k": "-"} }), []string{
			`metadata.labels.k: "-" is not a label value: expected at most 63 letters, digits, '-', '_' and '.', starting and ending with a letter or digit`,
			`metadata.labels["a/b/c"]: "a/b/c" is not a label key: expected [prefix/]name of letters, digits, '-', '_' and '.', the name at most 63 long`,
		}},
		{"a mode with a near miss", tool(func(t *v1.Tool) { t.Spec.Mode = "mcok" }), []string{`spec.mode: unknown value "mcok": expected one of mock, live, mcp, exec; did you mean "mock"?`}},
		{"a mode without its block", tool(func(t *v1.Tool) { t.Spec.Mode = v1.ModeLive }), []string{`spec.mode: mode live needs spec.http`}},
		{"two executor blocks", tool(func(t *v1.Tool) {
			t.Spec.HTTP, t.Spec.MCP = &v1.HTTPSpec{URL: "https://example.com"}, &v1.MCPToolSpec{Server: "s"}
		}), []string{`spec.mcp: a second executor block: a tool has spec.http or spec.mcp, not both`}},
		{"a root type", tool(func(t *v1.Tool) { t.Spec.InputSchema = json.RawMessage(`{"properties":{},"type":"array"}`) }), []string{
			`spec.input_schema.type: the root type of an input schema must be "object" (MCP specification, server/tools)`,
		}},
		{"a schema that is none", tool(func(t *v1.Tool) { t.Spec.InputSchema = json.RawMessage(`[1]`) }), []string{`spec.input_schema: a JSON Schema must be an object, got array`}},
		{"bounds", tool(func(t *v1.Tool) {
			t.Spec.TimeoutMS = -1
			t.Spec.HTTP = &v1.HTTPSpec{URL: "gopher://x", Method: "get", Retry: &v1.HTTPRetry{MaxAttempts: 101, RetryOn: []int{42}}}
		}), []string{
			`spec.http.method: unknown value "get": expected one of GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS; did you mean "GET"?`,
			`spec.http.retry.max_attempts: 101 is too large: expected at most 100`,
			`spec.http.retry.retry_on[0]: 42 is not an HTTP status code: expected 100 to 599`,
			`spec.http.url: "gopher://x" is not an http or https URL`,
			`spec.timeout_ms: -1 is too small: expected at least 0`,
		}},
		{"auth of two kinds", tool(func(t *v1.Tool) {
			t.Spec.HTTP = &v1.HTTPSpec{URL: "https://x", Auth: &v1.Auth{BearerEnv: "A", Basic: &v1.BasicAuth{UsernameEnv: "U"}}, TLS: &v1.TLS{CertFile: "c.pem"}}
		}), []string{
			`spec.http.auth.basic.password_env: required field "password_env" is missing`,
			`spec.http.auth: auth needs exactly one of bearer_env, basic, oauth2_client_credentials, oauth2_authorization_code`,
			`spec.http.tls: a client certificate needs both cert_file and key_file`,
		}},
		{"parts", tool(func(t *v1.Tool) {
			t.Spec.MockParts = []v1.Part{{Type: "image"}, {Type: "text"}, {Type: "picture"}, {Type: "resource", Resource: &v1.ResourceContents{}}}
		}), []string{
			`spec.mock_parts[0]: a part of type image needs data or media`,
			`spec.mock_parts[1]: a part of type text needs text`,
			`spec.mock_parts[2].type: unknown value "picture": expected one of text, image, audio, video, document, resource, resource_link`,
			`spec.mock_parts[3].resource.uri: required field "uri" is missing`,
		}},
		{"PromptKit's mode client is mocked", tool(func(t *v1.Tool) { t.APIVersion, t.Spec.Mode = "promptkit.altairalabs.ai/v1", "client" }), nil},
		{"another PromptKit mode is a warning", tool(func(t *v1.Tool) { t.APIVersion, t.Spec.Mode = "promptkit.altairalabs.ai/v1", "my-executor" }), []string{
			`warning: spec.mode: unknown value "my-executor": expected one of mock, live, mcp, exec`,
		}},
		{"many asks", tool(func(t *v1.Tool) {
			t.Spec.Examples = slices.Repeat([]v1.ToolExample{{Ask: "x"}}, v1.MaxAsks+1)
		}), []string{`spec.examples: 101 examples with ask: expected at most 100`}},
		{"a tool that is named as the search is", tool(func(t *v1.Tool) { t.Metadata.Name = v1.FindTools }), []string{
			`warning: metadata.name: clients that search for tools have a tool find_tools of the server itself, and cannot call this one directly: rename it`,
		}},
		{"a sound policy", policy(v1.ToolPolicySpec{Blocklist: []string{"a", "b*", "*"}, Allowlist: []string{}, MaxTotalToolCalls: n(0)}), nil},
		{"a policy", policy(v1.ToolPolicySpec{
			ToolChoice: "never", MaxTotalToolCalls: n(-1), Blocklist: []string{"", "a*b"},
			Limits: []v1.Limit{{Per: "week"}}, Match: &v1.Match{Tools: []string{"**"}},
		}), []string{
			`spec.blocklist[0]: "" is not a tool pattern: expected an exact name or a prefix with one trailing '*'`,
			`spec.blocklist[1]: "a*b" is not a tool pattern: expected an exact name or a prefix with one trailing '*'`,
			`spec.limits[0].max_calls: required field "max_calls" is missing`,
			`spec.limits[0].per: unknown value "week": expected one of turn, session, minute, hour, day`,
			`spec.match.tools[0]: "**" is not a tool pattern: expected an exact name or a prefix with one trailing '*'`,
			`spec.max_total_tool_calls: -1 is too small: expected at least 0`,
			`spec.tool_choice: unknown value "never": expected one of auto, required, none`,
		}},
		{"a server of neither kind", server(v1.MCPServerSpec{}), []string{`spec: an MCPServer needs spec.command (stdio) or spec.url`}},
		{"a server of both kinds", server(v1.MCPServerSpec{Command: "x", URL: "https://x"}), []string{`spec.url: an MCPServer has spec.command or spec.url, not both`}},
		{"fields of the other kind", server(v1.MCPServerSpec{URL: "https://x", Args: []string{"a"}}), []string{`spec.args: spec.args is for spec.command, not for spec.url`}},
		{"a prompt without a template", &v1.Prompt{Header: header(v1.KindPrompt)}, []string{`spec.template: a prompt needs spec.template or spec.system_prompt`}},
		{"assertions of PromptKit", &v1.Scenario{
			Header: v1.Header{APIVersion: v1.PromptKitGroup + "/v1alpha1", Kind: v1.KindScenario, Metadata: v1.Metadata{Name: "n"}},
			Spec: v1.ScenarioSpec{
				Turns:      []v1.Turn{{Assertions: []v1.Assertion{{Type: "tool_args"}, {Type: "json_pth"}}}},
				Assertions: []v1.Assertion{{Type: "tool_call_sequence"}, {Type: "tools_called"}},
			},
		}, []string{
			`warning: spec.turns[0].assertions[1].type: unknown value "json_pth": expected one of the ` + strconv.Itoa(len(v1.AssertionNames())) + ` names that 'toolctl explain' lists; did you mean "json_path"?`,
		}},
		{"a scenario without turns", &v1.Scenario{Header: header(v1.KindScenario)}, []string{`spec.turns: required field "turns" is missing`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			violations := tt.object.Validate()
			if t, ok := tt.object.(*v1.Tool); ok {
				if unknown, bad := t.UnknownMode(nil); bad {
					violations = append(violations, unknown)
				}
			}
			for _, f := range violations {
				s := v1.FieldPath(f.Path) + ": " + f.Message
				if f.IsWarning() {
					s = "warning: " + s
				}
				got = append(got, s)
			}
			sort.Strings(got)
			sort.Strings(tt.want)
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestToolset(t *testing.T) {
	one, many := 1, 100
	for _, tt := range []struct {
		spec          v1.ToolsetSpec
		tools, tokens int
		want          bool
	}{
		{v1.ToolsetSpec{}, 40, 8000, true}, {v1.ToolsetSpec{}, 41, 10, false}, {v1.ToolsetSpec{}, 1, 8001, false},
		{v1.ToolsetSpec{Discovery: v1.DiscoveryAuto, ListLimit: &many}, 41, 10, true}, {v1.ToolsetSpec{ListLimit: &one}, 2, 10, false}, {v1.ToolsetSpec{ListTokens: &one}, 1, 2, false},
		{v1.ToolsetSpec{Discovery: v1.DiscoveryList, ListLimit: &one}, 1000, 100_000, true}, {v1.ToolsetSpec{Discovery: v1.DiscoverySearch}, 0, 0, false},
	} {
		if got := tt.spec.Lists(tt.tools, tt.tokens); got != tt.want {
			t.Errorf("%+v lists %d tools of %d tokens: %v", tt.spec, tt.tools, tt.tokens, got)
		}
	}
	for _, tt := range []struct {
		spec      v1.ToolsetSpec
		principal string
		groups    []string
		want      bool
	}{
		{v1.ToolsetSpec{}, "", nil, true}, {v1.ToolsetSpec{Principals: []string{"support-*"}}, "support-1", nil, true}, {v1.ToolsetSpec{Principals: []string{"support-*"}}, "ann", []string{"support-1"}, false},
		{v1.ToolsetSpec{Principals: []string{"*"}}, "", nil, true}, {v1.ToolsetSpec{Principals: []string{"ann"}}, "", nil, false},
		{v1.ToolsetSpec{Principals: []string{"ann"}, Groups: []string{"support"}}, "bob", []string{"ops", "support"}, true}, {v1.ToolsetSpec{Groups: []string{"support"}}, "support", nil, false},
	} {
		if got := tt.spec.Admits(tt.principal, tt.groups); got != tt.want {
			t.Errorf("%+v admits %q of %q: %v", tt.spec, tt.principal, tt.groups, got)
		}
	}
}

func TestNewObjectKnowsEveryKind(t *testing.T) {
	for _, k := range v1.Kinds() {
		o := v1.NewObject(k)
		if o == nil || o.Head().Kind != k {
			t.Errorf("NewObject(%q) = %v", k, o)
		}
	}
	if v1.NewObject("Pod") != nil {
		t.Error("NewObject made a Pod")
	}
}

func TestToolMode(t *testing.T) {
	tests := []struct {
		name, want string
		spec       v1.ToolSpec
	}{
		{"no block", "mock", v1.ToolSpec{}},
		{"http", "http", v1.ToolSpec{HTTP: &v1.HTTPSpec{}}},
		{"mcp", "mcp", v1.ToolSpec{MCP: &v1.MCPToolSpec{}}},
		{"mode wins", "mock", v1.ToolSpec{Mode: "mock", HTTP: &v1.HTTPSpec{}}},
	}
	for _, tt := range tests {
		if got := (&v1.Tool{Spec: tt.spec}).ExecutorName(); got != tt.want {
			t.Errorf("%s: got %s; want %s", tt.name, got, tt.want)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"description", "input_schema", "mock_result", "timeout_ms"}
	for in, want := range map[string]string{
		"descripton": "description", "Description": "description", "inputSchema": "input_schema", "mock-result": "mock_result",
		"timout_ms": "timeout_ms", "timeout": "timeout_ms", "input": "input_schema", "in": "", "mock_resul_t": "mock_result", "xyz": "", "": "", "decsription": "description",
	} {
		if got := v1.Nearest(in, names); got != want {
			t.Errorf("Nearest(%q) = %q; want %q", in, got, want)
		}
	}
}

func TestPaths(t *testing.T) {
	for ptr, want := range map[string]string{
		"": "", "/spec/http/url": "spec.http.url", "/spec/limits/0/max_calls": "spec.limits[0].max_calls",
		"/spec/mocks/a~1b/x": `spec.mocks["a/b"].x`, "/0": `0`, "/a b": `["a b"]`,
	} {
		if got := v1.FieldPath(ptr); got != want {
			t.Errorf("FieldPath(%q) = %q; want %q", ptr, got, want)
		}
	}
	if got := v1.Pointer("/spec", "a/b", "~"); got != "/spec/a~1b/~0" {
		t.Errorf("Pointer = %q", got)
	}
	h := v1.Header{Source: v1.Source{File: "f", Line: 1, Column: 1}, Fields: map[string]v1.Source{"/spec": {File: "f", Line: 5, Column: 1}}}
	if got := h.Field("/spec/limits/0").String(); got != "f:5:1" {
		t.Errorf("the nearest parent is at %s", got)
	}
	if got := h.Field("/metadata").String(); got != "f:1:1" {
		t.Errorf("without a parent: %s", got)
	}
}

func TestMatchTool(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"files__read", "files__read", true}, {"mcp__files__read", "files__read", true}, {"mcp__files__*", "files__read", true},
		{"mcp__*", "files__read", true}, {"mcp__*", "read", false}, {"mcp__read", "read", false}, {"mcp__files__read", "files__write", false},
	} {
		if got := v1.MatchTool(tt.pattern, tt.name); got != tt.want {
			t.Errorf("MatchTool(%q, %q) = %v", tt.pattern, tt.name, got)
		}
	}
}

func TestMatchPattern(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{{"pay", "pay", true}, {"pay", "pays", false}, {"pay*", "pays", true}, {"*", "x", true}, {"*", "", true}, {"pay*", "pa", false}} {
		if got := v1.MatchPattern(tt.pattern, tt.name); got != tt.want {
			t.Errorf("MatchPattern(%q, %q) = %v", tt.pattern, tt.name, got)
		}
	}
}

func TestToolFilter(t *testing.T) {
	for _, tt := range []struct {
		name   string
		filter *v1.ToolFilter
		tool   string
		want   bool
	}{
		{"none", nil, "x", true},
		{"blocked", &v1.ToolFilter{Blocklist: []string{"write_*"}}, "write_file", false},
		{"blocked although allowed", &v1.ToolFilter{Allowlist: []string{"write_file"}, Blocklist: []string{"write_*"}}, "write_file", false},
		{"allowed", &v1.ToolFilter{Allowlist: []string{"read_*"}}, "read_file", true},
		{"not allowed", &v1.ToolFilter{Allowlist: []string{"read_*"}}, "list", false},
		{"an empty allowlist", &v1.ToolFilter{Allowlist: []string{}}, "list", false},
	} {
		if got := tt.filter.Allows(tt.tool); got != tt.want {
			t.Errorf("%s: got %v", tt.name, got)
		}
	}
}

func TestResultErrorTypes(t *testing.T) {
	cause := errors.New("cause")
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&v1.ValidationError{Type: v1.ArgsInvalid}, "args_invalid"},
		{&v1.PolicyError{}, "policy_refused"},
		{&v1.NotFoundError{}, "not_found"},
		{&v1.ExecutionError{Phase: v1.PhaseConnect, Cause: cause}, "connect_failed"},
		{&v1.ExecutionError{Phase: v1.PhaseTimeout}, "timeout"},
		{&v1.ExecutionError{Phase: v1.PhaseExecute}, "execution_failed"},
		{&v1.ExecutionError{Phase: v1.PhaseExecute, Cause: context.Canceled}, "cancelled"},
		{&v1.MCPError{Code: -32602}, "mcp_error"},
		{context.Canceled, "cancelled"},
		{context.DeadlineExceeded, "timeout"},
		{cause, "internal"},
	} {
		if got := v1.NewResultError(fmt.Errorf("wrapped: %w", tt.err)); got.Type != tt.want || !strings.HasPrefix(got.Message, "wrapped: ") {
			t.Errorf("%T: got %+v; want type %s", tt.err, got, tt.want)
		}
	}
	if v1.NewResultError(nil) != nil {
		t.Error("nil is no error")
	}
}

// What -o json prints is a contract.
func TestResultJSON(t *testing.T) {
	r := v1.Result{
		Tool: "t", Namespace: "n", Status: v1.StatusFailed, Content: json.RawMessage(`1`), Parts: []v1.Part{{Type: "text", Text: "x"}},
		Error:   &v1.ResultError{Type: "args_invalid", Message: "m", Path: "/a", Violations: []v1.Violation{{Path: "/a", Expected: "e", Got: "g", Message: "m"}}},
		Pending: &v1.PendingToolInfo{Reason: "requires_approval", Message: "m", ToolName: "t", Args: json.RawMessage(`{}`), ID: "i"},
		Policy:  &v1.PolicyDecision{Decision: "deny", Rule: "blocklist", Policy: "p"}, Attempts: 1, DurationMS: 1.5,
	}
	got, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"tool":"t","namespace":"n","status":"failed","content":1,"parts":[{"type":"text","text":"x"}],` +
		`"error":{"type":"args_invalid","message":"m","path":"/a","violations":[{"path":"/a","expected":"e","got":"g","message":"m"}]},` +
		`"pending":{"reason":"requires_approval","message":"m","tool_name":"t","args":{},"id":"i"},` +
		`"policy":{"decision":"deny","rule":"blocklist","policy":"p"},"attempts":1,"duration_ms":1.5}`
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
