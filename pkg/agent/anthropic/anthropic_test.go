package anthropic

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/agent/internal/wiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func env(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}

func open(t *testing.T, url string, transport http.RoundTripper) agent.Model {
	m, err := New(Options{Transport: transport, Timeout: time.Minute, Env: env(map[string]string{keyVar: wiretest.Key, urlVar: url})})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func check(t *testing.T, r *http.Request) {
	for name, want := range map[string]string{
		"X-Api-Key": wiretest.Key, "Authorization": "", "Anthropic-Version": "2023-06-01", "Content-Type": "application/json",
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("header %s: expected %q, got %q", name, want, got)
		}
	}
	if got := r.Method + " " + r.URL.Path; got != "POST /v1/messages" {
		t.Errorf("request: got %s", got)
	}
}

const weatherSchema = `{"type":"object","properties":{"zone":{"type":"string"},"city":{"type":"string","minLength":1},"id":{"type":"integer","maximum":90071992547409931}},"required":["city"]}`

var (
	specs = []agent.ToolSpec{
		{Name: "get_weather", Description: "Weather of a city", Parameters: json.RawMessage(weatherSchema)},
		{Name: "noop", Parameters: json.RawMessage(`{"type":"object"}`)},
	}
	hello   = agent.Request{Model: "claude-sonnet-4-5", System: "Be brief.", Messages: []agent.Message{{Role: agent.RoleUser, Text: "How warm is it in Oslo?"}}}
	tools   = agent.Request{Model: "claude-sonnet-4-5", Messages: hello.Messages, Tools: specs}
	png     = v1.Part{Type: "image", Data: "iVBORw0KGgo=", MIMEType: "image/png"}
	pdf     = v1.Part{Type: "document", Data: "JVBERi0=", MIMEType: "application/pdf", Name: "a.pdf"}
	results = agent.Request{Model: "claude-sonnet-4-5", Tools: specs, ToolChoice: "auto", Messages: []agent.Message{
		{Role: agent.RoleUser, Text: "How warm is it?"},
		{Role: agent.RoleAssistant, Text: "Let me look.", ToolCalls: []agent.ToolCall{
			{ID: "toolu_01", Name: "get_weather", Args: `{"city":"Oslo","id":90071992547409931}`},
			{ID: "call:2", Name: "get_weather", Args: `{"city":`},
			{ID: "toolu_03", Name: "noop"},
		}},
		{Role: agent.RoleTool, ToolCallID: "toolu_01", Tool: "get_weather", Text: `{"temp":4}`, Parts: []v1.Part{png, pdf}},
		{Role: agent.RoleTool, ToolCallID: "call:2", Tool: "get_weather", Text: "the arguments are not valid JSON", IsError: true},
		{Role: agent.RoleTool, ToolCallID: "toolu_03", Tool: "noop"},
		{Role: agent.RoleUser, Text: "And now?"},
		{Role: agent.RoleAssistant},
	}}
	raw = json.RawMessage(`{"provider":"anthropic","content":[` +
		`{"type":"thinking","thinking":"They ask for Oslo.","signature":"c2ln","future":1.0},` +
		`{"type":"text","text":"Let me look."},` +
		`{"type":"redacted_thinking","data":"ZGF0YQ=="},` +
		`{"type":"tool_use","id":"toolu_01","name":"get_weather","input":{"city":"Oslo"}}]}`)
	thought = []agent.ToolCall{{ID: "toolu_01", Name: "get_weather", Args: `{"city":"Oslo"}`}}
	kept1   = agent.Request{Model: "claude-sonnet-4-5", Tools: specs, Messages: []agent.Message{
		{Role: agent.RoleUser, Text: "How warm is it?"},
		{Role: agent.RoleAssistant, Text: "Let me look.", ToolCalls: thought, Raw: raw},
		{Role: agent.RoleTool, ToolCallID: "toolu_01", Tool: "get_weather", Text: "4"},
		{Role: agent.RoleAssistant, Text: "Another text.", ToolCalls: thought, Raw: raw},
		{Role: agent.RoleTool, ToolCallID: "toolu_01", Tool: "get_weather", Text: "4"},
		{Role: agent.RoleAssistant, Text: "Foreign.", Raw: json.RawMessage(`{"provider":"google","content":[{"type":"text","text":"x"}]}`)},
		{Role: agent.RoleUser, Text: "Hm"},
	}}
	parts = agent.Request{Model: "claude-sonnet-4-5", Messages: []agent.Message{{Role: agent.RoleUser, Text: "What is this?", Parts: []v1.Part{
		png,
		{Type: "image", URI: "https://example.com/a.png"},
		pdf,
		{Type: "document", URI: "https://example.com/a.pdf"},
		{Type: "document", Data: "aGVsbG8=", MIMEType: "text/plain; charset=utf-8"},
		{Type: "text", Text: "a text"},
		{Type: "resource", Resource: &v1.ResourceContents{URI: "file:///notes.txt", Text: "notes"}},
		{Type: "resource_link", URI: "file:///c.txt", Name: "c"},
	}}}}
	settings = agent.Request{Model: "claude-sonnet-4-5", Messages: hello.Messages, Tools: specs, ToolChoice: "required",
		Output:   json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"z":{"type":"string"},"city":{"type":"string"}},"required":["z","city"],"additionalProperties":false}`),
		Thinking: true, ThinkingBudget: 32000,
		Parameters: json.RawMessage(`{"temperature":0.7,"top_p":0.9,"top_k":5,"stop":"END","metadata":{"user_id":"u"}}`)}
	adaptive = agent.Request{Model: "claude-opus-4-6", Messages: hello.Messages, Tools: specs, ToolChoice: "none", Thinking: true,
		Parameters: json.RawMessage(`{"max_completion_tokens":100,"stop":["A","B"]}`)}
)

func TestWire(t *testing.T) {
	wiretest.Run(t, []wiretest.Case{
		{Name: "text", Request: hello},
		{Name: "text-stream", Request: hello, Stream: true},
		{Name: "calls", Request: tools},
		{Name: "calls-stream", Request: tools, Stream: true},
		{Name: "thinking", Request: tools},
		{Name: "thinking-stream", Request: tools, Stream: true},
		{Name: "results", Request: results},
		{Name: "kept", Request: kept1},
		{Name: "parts", Request: parts},
		{Name: "settings", Request: settings},
		{Name: "adaptive", Request: adaptive},
		{Name: "retry", Request: hello},
		{Name: "error-400", Request: hello},
		{Name: "error-401", Request: hello, Stream: true},
		{Name: "error-404", Request: hello},
		{Name: "error-500", Request: hello},
		{Name: "stream-error", Request: hello, Stream: true},
		{Name: "stream-broken", Request: hello, Stream: true},
		{Name: "stream-cut", Request: hello, Stream: true},
		{Name: "no-content", Request: hello},
		{Name: "broken", Request: hello},
	}, open, check)
	for _, name := range []string{"text", "calls", "thinking"} {
		wiretest.Same(t, name, name+"-stream")
	}
}

func TestCancel(t *testing.T) {
	wiretest.Cancel(t, open, "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"It is\"}}\n\n", "It is", hello)
}

func TestNew(t *testing.T) {
	for _, c := range []struct {
		name string
		env  map[string]string
		want string // the error, or the reply
	}{
		{"nothing", nil, "anthropic: ANTHROPIC_API_KEY is not set: set it to a key of https://platform.claude.com"},
		{"key", map[string]string{keyVar: wiretest.Key}, "anthropic at https://api.anthropic.com"},
		{"token", map[string]string{tokenVar: wiretest.Key}, "anthropic at https://api.anthropic.com"},
		{"local", map[string]string{urlVar: "http://localhost:4000"}, "anthropic at http://localhost:4000"},
		{"no address", map[string]string{keyVar: "k", urlVar: "ftp://x"}, "anthropic: ANTHROPIC_BASE_URL is not an address: it must begin with http:// or https://, for example http://localhost:8080"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := New(Options{Env: env(c.env)})
			got := ""
			if err != nil {
				got = err.Error()
			} else {
				got = m.String()
			}
			if got != c.want {
				t.Errorf("expected %q, got %q", c.want, got)
			}
			if all := fmt.Sprintf("%v %+v %#v", m, m, m); strings.Contains(all, wiretest.Key) {
				t.Errorf("the key shows: %s", all)
			}
		})
	}
}

func TestToken(t *testing.T) {
	url := wiretest.Answers(t, http.StatusForbidden, nil, `{"error":{"type":"permission_error","message":"token sk-test-4f7d2c9b8a61e053 may not"}}`)
	m, err := New(Options{Env: env(map[string]string{tokenVar: wiretest.Key, urlVar: url}), Transport: wiretest.Transport(t)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Generate(t.Context(), hello, nil)
	if want := "ModelError: anthropic: token [REDACTED] may not; check ANTHROPIC_AUTH_TOKEN (status 403, permission_error)"; wiretest.Describe(err) != want {
		t.Errorf("expected %q, got %v", want, err)
	}
}

func TestRefusedRequests(t *testing.T) {
	m := open(t, "http://127.0.0.1:1", wiretest.Transport(t))
	user := func(p v1.Part) []agent.Message { return []agent.Message{{Role: agent.RoleUser, Parts: []v1.Part{p}}} }
	for _, c := range []struct {
		name string
		req  agent.Request
		want string
	}{
		{"no model", agent.Request{}, `anthropic: no model is set: name one, for example "claude-sonnet-4-5"`},
		{"role", agent.Request{Model: "m", Messages: []agent.Message{{Role: "system"}}}, `anthropic: messages[0]: expected the role user, assistant or tool, got "system"`},
		{"schema", agent.Request{Model: "m", Tools: []agent.ToolSpec{{Name: "a", Parameters: json.RawMessage(`null`)}}}, `anthropic: tool "a": parameters must be a JSON Schema object`},
		{"choice", agent.Request{Model: "m", Tools: specs, ToolChoice: "maybe"}, `anthropic: tool_choice: expected auto, required or none, got "maybe"`},
		{"parameters", agent.Request{Model: "m", Parameters: json.RawMessage(`{"system":"x"}`)}, `anthropic: parameters: "system" cannot be set: toolctl sets it`},
		{"output", agent.Request{Model: "m", Output: json.RawMessage(`[]`)}, `anthropic: output must be a JSON Schema object`},
		{"audio", agent.Request{Model: "m", Messages: user(v1.Part{Type: "audio", Data: "AA==", MIMEType: "audio/wav"})}, `anthropic: messages[0]: audio of type audio/wav cannot be sent: the API accepts text, images and documents`},
		{"image", agent.Request{Model: "m", Messages: user(v1.Part{Type: "image", Data: "AA==", MIMEType: "image/tiff"})}, `anthropic: messages[0]: image of type image/tiff cannot be sent: the API accepts image/png, image/jpeg, image/gif and image/webp, or a uri of http or https`},
		{"document", agent.Request{Model: "m", Messages: user(v1.Part{Type: "document", Data: "AA==", MIMEType: "application/zip"})}, `anthropic: messages[0]: document of type application/zip cannot be sent: the API accepts application/pdf and text`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := m.Generate(t.Context(), c.req, nil); err == nil || err.Error() != c.want {
				t.Errorf("expected %q, got %v", c.want, err)
			}
		})
	}
}

func TestSchemaKeepsOrderAndDigits(t *testing.T) {
	a := api()
	p, err := a.Encode(settings, false)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{weatherSchema, `{"z":{"type":"string"},"city":{"type":"string"}}`} {
		if !strings.Contains(string(body), want) {
			t.Errorf("expected %s in %s", want, body)
		}
	}
}

func TestStructured(t *testing.T) {
	m := open(t, "http://127.0.0.1:1", wiretest.Transport(t)).(*Model)
	for schema, want := range map[string]bool{
		string(settings.Output): true,
		`{"type":"object","properties":{"a":{"type":"array","minItems":1,"items":{"anyOf":[{"type":"string","format":"date"},{"type":"null"}]}}},"additionalProperties":false}`: true,
		`{"type":"object","properties":{"a":{"type":"string"}}}`:                                               false,
		`{"type":"object","properties":{"a":{"type":["object","null"]}},"additionalProperties":false}`:         false,
		`{"type":"object","properties":{"a":{"type":"string","minLength":1}},"additionalProperties":false}`:    false,
		`{"type":"object","properties":{"a":{"type":"string","format":"regex"}},"additionalProperties":false}`: false,
		`{"type":"object","properties":{"a":{"type":"array","minItems":2}},"additionalProperties":false}`:      false,
		`{"type":"object","properties":{"a":{"$ref":"#"}},"additionalProperties":false}`:                       false,
		`{"type":"object","properties":{"a":true},"additionalProperties":false}`:                               false,
		`{"type":"object","properties":[],"additionalProperties":false}`:                                       false,
		`{"type":"object","additionalProperties":{}}`:                                                          false,
		`{"type":"object","anyOf":{},"additionalProperties":false}`:                                            false,
		`{"type":"array"}`: false,
		`[]`:               false,
		`{"type":"object","additionalProperties":false,"properties":{"a":` + strings.Repeat(`{"items":`, 40) + `{}` + strings.Repeat(`}`, 40) + `}}`: false,
	} {
		if got := m.Structured(json.RawMessage(schema)); got != want {
			t.Errorf("Structured(%s): expected %t", schema, want)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	wiretest.Fuzz(f, func(transport http.RoundTripper) (agent.Model, error) {
		return New(Options{Transport: transport, Env: env(map[string]string{keyVar: wiretest.Key})})
	}, hello)
}
