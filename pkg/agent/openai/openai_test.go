package openai

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
	m, err := New(Options{Transport: transport, Timeout: time.Minute, Env: env(map[string]string{
		keyVar: wiretest.Key + "\n", urlVar: url + "/v1", "OPENAI_ORG_ID": "org-1", "OPENAI_PROJECT_ID": "proj-1",
	})})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func check(t *testing.T, r *http.Request) {
	for name, want := range map[string]string{
		"Authorization": "Bearer " + wiretest.Key, "OpenAI-Organization": "org-1", "OpenAI-Project": "proj-1", "Content-Type": "application/json",
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("header %s: expected %q, got %q", name, want, got)
		}
	}
	if got := r.Method + " " + r.URL.Path; got != "POST /v1/chat/completions" {
		t.Errorf("request: got %s", got)
	}
}

const weatherSchema = `{"type":"object","properties":{"zone":{"type":"string"},"city":{"type":"string","minLength":1},"id":{"type":"integer","maximum":90071992547409931}},"required":["city"]}`

var (
	weather = agent.ToolSpec{Name: "get_weather", Description: "Weather of a city", Parameters: json.RawMessage(weatherSchema)}
	hello   = agent.Request{Model: "gpt-5-mini", System: "Be brief.", Messages: []agent.Message{{Role: agent.RoleUser, Text: "How warm is it in Oslo?"}}}
	tools   = agent.Request{Model: "gpt-5-mini", Messages: hello.Messages, Tools: []agent.ToolSpec{weather, {Name: "noop", Parameters: json.RawMessage(`{"type":"object"}`)}}}
	png     = v1.Part{Type: "image", Data: "iVBORw0KGgo=", MIMEType: "image/png"}
	results = agent.Request{Model: "gpt-5-mini", Tools: tools.Tools, ToolChoice: "auto", Messages: []agent.Message{
		{Role: agent.RoleUser, Text: "How warm is it?"},
		{Role: agent.RoleAssistant, Text: "Let me look.", ToolCalls: []agent.ToolCall{
			{ID: "call_abc", Name: "get_weather", Args: `{"city":"Oslo","id":90071992547409931}`},
			{ID: "call_def", Name: "get_weather", Args: `{"city":`},
			{ID: "call_ghi", Name: "noop"},
		}},
		{Role: agent.RoleTool, ToolCallID: "call_abc", Tool: "get_weather", Text: `{"temp":4}`, Parts: []v1.Part{png}},
		{Role: agent.RoleTool, ToolCallID: "call_def", Tool: "get_weather", Text: "the arguments are not valid JSON", IsError: true},
		{Role: agent.RoleTool, ToolCallID: "call_ghi", Tool: "noop"},
		{Role: agent.RoleUser, Text: "And now?"},
	}}
	parts = agent.Request{Model: "gpt-5-mini", Messages: []agent.Message{{Role: agent.RoleUser, Text: "What is this?", Parts: []v1.Part{
		png,
		{Type: "image", URI: "https://example.com/a.png"},
		{Type: "audio", Data: "UklGRg==", MIMEType: "audio/x-wav"},
		{Type: "audio", Data: "SUQz", MIMEType: "audio/mpeg"},
		{Type: "document", Data: "JVBERi0=", MIMEType: "application/pdf", Name: "a.pdf"},
		{Type: "document", Data: "aGVsbG8=", MIMEType: "text/plain; charset=utf-8"},
		{Type: "text", Text: "a text"},
		{Type: "resource", Resource: &v1.ResourceContents{URI: "file:///notes.txt", Text: "notes"}},
		{Type: "resource", Resource: &v1.ResourceContents{URI: "file:///b.png", Blob: "iVBORw0KGgo=", MIMEType: "image/png"}},
		{Type: "resource_link", URI: "file:///c.txt", Name: "c"},
	}}}}
	settings = agent.Request{Model: "gpt-5-mini", Messages: hello.Messages, Tools: tools.Tools, ToolChoice: "required",
		Output:   json.RawMessage(`{"type":"object","properties":{"z":{"type":"string"},"city":{"type":"string"}},"required":["z","city"],"additionalProperties":false}`),
		Thinking: true, ThinkingBudget: 1000,
		Parameters: json.RawMessage(`{"temperature":0.7,"top_p":0.9,"max_tokens":100,"stop":["END"],"seed":42,"parallel_tool_calls":false,"chat_template_kwargs":{"enable_thinking":true}}`)}
	kept1 = agent.Request{Model: "qwen3", Tools: tools.Tools, ToolChoice: "none", Messages: []agent.Message{
		{Role: agent.RoleUser, Text: "Hi"},
		{Role: agent.RoleAssistant, Text: "Hello", Raw: json.RawMessage(`{"provider":"openai","message":{"reasoning_content":"greet"}}`)},
		{Role: agent.RoleUser, Text: "How warm is it?"},
		{Role: agent.RoleAssistant, ToolCalls: []agent.ToolCall{{ID: "call_1", Name: "get_weather", Args: `{"city":"Oslo"}`}},
			Raw: json.RawMessage(`{"provider":"openai","message":{"reasoning_content":"They ask for Oslo."},"calls":{"call_1":{"extra_content":{"google":{"thought_signature":"c2ln"}}}}}`)},
		{Role: agent.RoleTool, ToolCallID: "call_1", Tool: "get_weather", Text: "4"},
		{Role: agent.RoleAssistant, ToolCalls: []agent.ToolCall{{ID: "call_2", Name: "noop", Args: `{}`}}, Raw: json.RawMessage(`{"provider":"anthropic","message":{"x":1}}`)},
		{Role: agent.RoleTool, ToolCallID: "call_2", Tool: "noop", Text: "ok"},
	}}
)

func TestWire(t *testing.T) {
	wiretest.Run(t, []wiretest.Case{
		{Name: "text", Request: hello},
		{Name: "text-stream", Request: hello, Stream: true},
		{Name: "calls", Request: tools},
		{Name: "calls-stream", Request: tools, Stream: true},
		{Name: "results", Request: results},
		{Name: "parts", Request: parts},
		{Name: "settings", Request: settings},
		{Name: "reasoning", Request: tools},
		{Name: "reasoning-stream", Request: tools, Stream: true},
		{Name: "same-index-stream", Request: tools, Stream: true},
		{Name: "kept", Request: kept1},
		{Name: "refusal", Request: hello},
		{Name: "filter", Request: hello},
		{Name: "retry", Request: hello},
		{Name: "error-400", Request: hello},
		{Name: "error-401", Request: hello, Stream: true},
		{Name: "error-404", Request: hello},
		{Name: "error-429", Request: hello},
		{Name: "error-500", Request: hello},
		{Name: "error-vllm", Request: hello},
		{Name: "error-ollama", Request: hello},
		{Name: "error-redirect", Request: hello},
		{Name: "stream-error", Request: hello, Stream: true},
		{Name: "stream-broken", Request: hello, Stream: true},
		{Name: "stream-cut", Request: hello, Stream: true},
		{Name: "broken", Request: hello},
		{Name: "no-json", Request: hello},
		{Name: "no-choices", Request: hello},
		{Name: "html", Request: hello},
	}, open, check)
	for _, name := range []string{"text", "calls", "reasoning"} {
		wiretest.Same(t, name, name+"-stream")
	}
}

func TestCancel(t *testing.T) {
	wiretest.Cancel(t, open, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"It is\"}}]}\n\n", "It is", hello)
}

func TestTimeout(t *testing.T) {
	url := wiretest.Hangs(t, ": nothing yet\n\n")
	m, err := New(Options{Env: env(map[string]string{urlVar: url}), Transport: wiretest.Transport(t), Timeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Generate(t.Context(), hello, func(agent.Delta) {})
	want := "ExecutionError timeout: openai: incomplete response from " + url + " after 50ms"
	if got := wiretest.Describe(err); got != want {
		t.Errorf("expected %q, got %q", want, got)
	}
}

func TestUnreachable(t *testing.T) {
	// Nobody listens on this port, and no text may contain the password of the address.
	m, err := New(Options{Env: env(map[string]string{urlVar: "http://user:hunter2hunter2@127.0.0.1:1/v1"}), Transport: wiretest.Transport(t)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Generate(t.Context(), hello, nil)
	got := wiretest.Describe(err)
	if !strings.HasPrefix(got, "ExecutionError connect: openai: cannot reach http://127.0.0.1:1: ") || !strings.HasSuffix(got, "check OPENAI_BASE_URL and the network") {
		t.Errorf("got %q", got)
	}
	if all := fmt.Sprintf("%v %+v %#v %s", err, m, m, m); strings.Contains(all, "hunter2") {
		t.Errorf("the password shows: %s", all)
	}
}

func TestNew(t *testing.T) {
	for _, c := range []struct {
		name string
		env  map[string]string
		want string // the error, or the text of the model
	}{
		{"nothing", nil, "openai: OPENAI_API_KEY is not set: set it, or set OPENAI_BASE_URL to a server that needs no key, for example http://localhost:11434/v1"},
		{"empty", map[string]string{keyVar: " ", urlVar: ""}, "openai: OPENAI_API_KEY is not set: set it, or set OPENAI_BASE_URL to a server that needs no key, for example http://localhost:11434/v1"},
		{"key", map[string]string{keyVar: wiretest.Key}, "openai at https://api.openai.com"},
		{"local", map[string]string{urlVar: "http://localhost:11434/v1"}, "openai at http://localhost:11434"},
		{"no address", map[string]string{urlVar: "localhost:11434"}, "openai: OPENAI_BASE_URL is not an address: it must begin with http:// or https://, for example http://localhost:8080"},
		{"broken address", map[string]string{urlVar: "http://a:secret%@b"}, "openai: OPENAI_BASE_URL is not an address: it must begin with http:// or https://, for example http://localhost:8080"},
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

func TestRefusedRequests(t *testing.T) {
	m := open(t, "http://127.0.0.1:1", wiretest.Transport(t))
	user := func(p v1.Part) []agent.Message { return []agent.Message{{Role: agent.RoleUser, Parts: []v1.Part{p}}} }
	for _, c := range []struct {
		name string
		req  agent.Request
		want string
	}{
		{"no model", agent.Request{}, `openai: no model is set: name one, for example "gpt-5-mini"`},
		{"role", agent.Request{Model: "m", Messages: []agent.Message{{Role: "system"}}}, `openai: messages[0]: expected the role user, assistant or tool, got "system"`},
		{"schema", agent.Request{Model: "m", Tools: []agent.ToolSpec{{Name: "a", Parameters: json.RawMessage(`[]`)}}}, `openai: tool "a": parameters must be a JSON Schema object`},
		{"choice", agent.Request{Model: "m", Tools: tools.Tools, ToolChoice: "maybe"}, `openai: tool_choice: expected auto, required or none, got "maybe"`},
		{"parameters", agent.Request{Model: "m", Parameters: json.RawMessage(`[1]`)}, `openai: parameters must be a JSON object: json: cannot unmarshal array into Go value of type map[string]json.RawMessage`},
		{"reserved", agent.Request{Model: "m", Parameters: json.RawMessage(`{"stream":true}`)}, `openai: parameters: "stream" cannot be set: toolctl sets it`},
		{"video", agent.Request{Model: "m", Messages: user(v1.Part{Type: "video", Data: "AA==", MIMEType: "video/mp4"})}, `openai: messages[0]: video of type video/mp4 cannot be sent: the API accepts text, images, audio and documents`},
		{"audio", agent.Request{Model: "m", Messages: user(v1.Part{Type: "audio", Data: "AA==", MIMEType: "audio/ogg"})}, `openai: messages[0]: audio of type audio/ogg cannot be sent: the API accepts the data of audio/wav and audio/mpeg`},
		{"document", agent.Request{Model: "m", Messages: user(v1.Part{Type: "document", Data: "AA==", MIMEType: "application/zip"})}, `openai: messages[0]: document of type application/zip cannot be sent: the API accepts the data of application/pdf, and text`},
		{"base64", agent.Request{Model: "m", Messages: user(v1.Part{Type: "image", Data: "?", MIMEType: "image/png"})}, `openai: messages[0]: parts[0]: data is not base64: illegal base64 data at input byte 0`},
		{"no data", agent.Request{Model: "m", Messages: user(v1.Part{Type: "image"})}, `openai: messages[0]: parts[0]: image has neither data nor uri`},
		{"no type", agent.Request{Model: "m", Messages: user(v1.Part{Type: "image", Data: "AA=="})}, `openai: messages[0]: parts[0]: image has no mime_type`},
		{"file", agent.Request{Model: "m", Messages: user(v1.Part{Type: "image", URI: "file:///etc/passwd"})}, `openai: messages[0]: image: expected data, or a uri of http or https, got "file:///etc/passwd"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := m.Generate(t.Context(), c.req, nil); err == nil || err.Error() != c.want {
				t.Errorf("expected %q, got %v", c.want, err)
			}
		})
	}
}

func TestOwnAPIWantsOtherName(t *testing.T) {
	a := api(true)
	p, err := a.Encode(agent.Request{Model: "m", Parameters: json.RawMessage(`{"max_tokens":5}`)}, false)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := json.Marshal(p); err != nil || string(body) != `{"max_completion_tokens":5,"model":"m"}` {
		t.Errorf("got %s, %v", body, err)
	}
}

func TestSchemaKeepsOrderAndDigits(t *testing.T) {
	a := api(false)
	p, err := a.Encode(settings, false)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`{"zone":{"type":"string"},"city":{"type":"string","minLength":1},"id":{"type":"integer","maximum":90071992547409931}}`,
		string(settings.Output),
	} {
		if !strings.Contains(string(body), want) {
			t.Errorf("expected %s in %s", want, body)
		}
	}
}

func TestStructured(t *testing.T) {
	m := open(t, "http://127.0.0.1:1", wiretest.Transport(t)).(*Model)
	for _, c := range []struct {
		schema             string
		structured, strict bool
	}{
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`, true, true},
		{`{"type":"object","properties":{"a":{"type":["object","null"],"properties":{},"additionalProperties":false},"b":{"type":"array","items":{"anyOf":[{"type":"string"},{"$ref":"#/$defs/x"}]}}},"required":["a","b"],"additionalProperties":false,"$defs":{"x":{"type":"integer","minimum":1}}}`, true, true},
		{`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`, true, false},
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, true, false},
		{`{"type":"object","properties":{"a":{"type":"object"}},"required":["a"],"additionalProperties":false}`, true, false},
		{`{"type":"object","properties":{"a":{"type":"string","minLength":1}},"required":["a"],"additionalProperties":false}`, true, false},
		{`{"type":"object","additionalProperties":false,"anyOf":[]}`, true, false},
		{`{"type":"object","additionalProperties":false,"properties":3}`, true, false},
		{`{"type":"string"}`, false, true},
		{`true`, false, false},
		{`{`, false, false},
		{`{"type":"object","additionalProperties":false,"properties":{"a":` + strings.Repeat(`{"items":`, 40) + `{}` + strings.Repeat(`}`, 40) + `},"required":["a"]}`, true, false},
	} {
		if got := m.Structured(json.RawMessage(c.schema)); got != c.structured {
			t.Errorf("Structured(%s): expected %t", c.schema, c.structured)
		}
		if got := strict(json.RawMessage(c.schema)); got != c.strict {
			t.Errorf("strict(%s): expected %t", c.schema, c.strict)
		}
	}
}

func TestEffort(t *testing.T) {
	for budget, want := range map[int]string{0: "medium", 1024: "low", 2048: "low", 8192: "medium", 8193: "high"} {
		if got := effort(budget); got != want {
			t.Errorf("budget %d: expected %q, got %q", budget, want, got)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	wiretest.Fuzz(f, func(transport http.RoundTripper) (agent.Model, error) {
		return New(Options{Transport: transport, Env: env(map[string]string{keyVar: wiretest.Key})})
	}, hello)
}
