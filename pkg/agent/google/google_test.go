package google

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

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

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
	if got := r.Header.Get("X-Goog-Api-Key"); got != wiretest.Key {
		t.Errorf("header x-goog-api-key: got %q", got)
	}
	want := "POST /v1beta/models/gemini-2.5-flash:generateContent"
	switch {
	case strings.Contains(t.Name(), "/settings") || strings.Contains(t.Name(), "/kept"):
		want = "POST /v1beta/models/gemini-3-pro-preview:generateContent"
	case strings.Contains(t.Name(), "stream"):
		want = "POST /v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse"
	}
	if got := r.Method + " " + r.URL.RequestURI(); got != want {
		t.Errorf("request: expected %s, got %s", want, got)
	}
}

const weatherSchema = `{"type":"object","properties":{"zone":{"type":"string"},"city":{"type":"string","minLength":1},"id":{"type":"integer","maximum":90071992547409931}},"required":["city"]}`

var (
	specs = []agent.ToolSpec{
		{Name: "get_weather", Description: "Weather of a city", Parameters: json.RawMessage(weatherSchema)},
		{Name: "noop", Parameters: json.RawMessage(`{"type":"object"}`)},
	}
	hello   = agent.Request{Model: "gemini-2.5-flash", System: "Be brief.", Messages: []agent.Message{{Role: agent.RoleUser, Text: "How warm is it in Oslo?"}}}
	tools   = agent.Request{Model: "models/gemini-2.5-flash", Messages: hello.Messages, Tools: specs}
	png     = v1.Part{Type: "image", Data: "iVBORw0KGgo=", MIMEType: "image/png"}
	schema  = json.RawMessage(`{"type":"object","properties":{"z":{"type":"string"},"city":{"type":"string"}},"required":["z","city"]}`)
	results = agent.Request{Model: "gemini-2.5-flash", Tools: specs, ToolChoice: "auto", Messages: []agent.Message{
		{Role: agent.RoleUser, Text: "How warm is it?"},
		{Role: agent.RoleAssistant, Text: "Let me look.", ToolCalls: []agent.ToolCall{
			{ID: "call_1", Name: "get_weather", Args: `{"city":"Oslo","id":90071992547409931}`},
			{ID: "call_2", Name: "get_weather", Args: `{"city":`},
			{ID: "call_3", Name: "noop"},
		}},
		{Role: agent.RoleTool, ToolCallID: "call_1", Tool: "weather.get", Text: `{"temp":4.0}`, Parts: []v1.Part{png}},
		{Role: agent.RoleTool, ToolCallID: "call_2", Tool: "get_weather", Text: "the arguments are not valid JSON", IsError: true},
		{Role: agent.RoleTool, ToolCallID: "call_3", Tool: "noop"},
		{Role: agent.RoleUser, Text: "And now?"},
		{Role: agent.RoleAssistant},
	}}
	raw   = json.RawMessage(`{"provider":"google","parts":[{"text":"They ask for Oslo.","thought":true},{"text":"Let me look."},{"functionCall":{"name":"get_weather","args":{"city":"Oslo","n":1.0}},"thoughtSignature":"c2lnbmF0dXJl"},{"functionCall":{"id":"fc-2","name":"noop"}}]}`)
	calls = []agent.ToolCall{{ID: "call_1", Name: "get_weather", Args: `{"city":"Oslo"}`}, {ID: "fc-2", Name: "noop", Args: `{}`}}
	kept1 = agent.Request{Model: "gemini-3-pro-preview", Tools: specs, ToolChoice: "none", Messages: []agent.Message{
		{Role: agent.RoleUser, Text: "How warm is it?"},
		{Role: agent.RoleAssistant, Text: "Let me look.", ToolCalls: calls, Raw: raw},
		{Role: agent.RoleTool, ToolCallID: "call_1", Tool: "get_weather", Text: "4"},
		{Role: agent.RoleTool, ToolCallID: "fc-2", Tool: "noop", Text: "ok"},
		{Role: agent.RoleAssistant, Text: "Edited since.", ToolCalls: calls, Raw: raw},
		{Role: agent.RoleTool, ToolCallID: "call_1", Tool: "get_weather", Text: "4"},
		{Role: agent.RoleTool, ToolCallID: "fc-2", Tool: "noop", Text: "ok"},
		{Role: agent.RoleAssistant, Text: "Foreign.", Raw: json.RawMessage(`{"provider":"anthropic","parts":[{"text":"x"}]}`)},
		{Role: agent.RoleUser, Text: "Hm"},
	}}
	parts = agent.Request{Model: "gemini-2.5-flash", Messages: []agent.Message{{Role: agent.RoleUser, Text: "What is this?", Parts: []v1.Part{
		png,
		{Type: "audio", Data: "T2dnUw==", MIMEType: "audio/ogg"},
		{Type: "video", Data: "AAAA", MIMEType: "video/mp4"},
		{Type: "video", URI: "https://www.youtube.com/watch?v=x"},
		{Type: "document", Data: "JVBERi0=", MIMEType: "application/pdf"},
		{Type: "document", Data: "aGVsbG8=", MIMEType: "text/plain"},
		{Type: "text", Text: "a <text>"},
	}}}}
	configured = agent.Request{Model: "gemini-3-pro-preview", Messages: hello.Messages, Tools: specs, ToolChoice: "required",
		Output: schema, Thinking: true, ThinkingBudget: 1000,
		Parameters: json.RawMessage(`{"temperature":0.7,"top_p":0.9,"top_k":5,"max_tokens":100,"stop":"END","seed":42,"presence_penalty":0.1,"responseLogprobs":true,"generationConfig":{"mediaResolution":"MEDIA_RESOLUTION_LOW"},"safetySettings":[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"BLOCK_NONE"}]}`)}
	outputTools = agent.Request{Model: "gemini-2.5-flash", System: "Be brief.", Messages: hello.Messages, Tools: specs, Output: schema, Thinking: true}
	output      = agent.Request{Model: "gemini-2.5-flash", Messages: hello.Messages, Output: schema}
)

func TestWire(t *testing.T) {
	wiretest.Run(t, []wiretest.Case{
		{Name: "text", Request: hello},
		{Name: "text-stream", Request: hello, Stream: true},
		{Name: "calls", Request: tools},
		{Name: "calls-stream", Request: tools, Stream: true},
		{Name: "thinking", Request: tools},
		{Name: "thinking-stream", Request: tools, Stream: true},
		{Name: "signed-text-stream", Request: hello, Stream: true},
		{Name: "results", Request: results},
		{Name: "kept", Request: kept1},
		{Name: "parts", Request: parts},
		{Name: "settings", Request: configured},
		{Name: "output-tools", Request: outputTools},
		{Name: "output", Request: output},
		{Name: "image", Request: hello},
		{Name: "blocked", Request: hello},
		{Name: "retry", Request: hello},
		{Name: "error-400", Request: hello},
		{Name: "error-404", Request: hello},
		{Name: "error-500", Request: hello},
		{Name: "stream-error", Request: hello, Stream: true},
		{Name: "stream-broken", Request: hello, Stream: true},
		{Name: "stream-cut", Request: hello, Stream: true},
		{Name: "wrong-types", Request: hello},
		{Name: "stream-wrong-types", Request: hello, Stream: true},
		{Name: "wrong-number", Request: hello},
		{Name: "no-candidates", Request: hello},
	}, open, check)
	for _, name := range []string{"text", "calls", "thinking"} {
		wiretest.Same(t, name, name+"-stream")
	}
}

func TestCancel(t *testing.T) {
	wiretest.Cancel(t, open, "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"It is\"}]}}]}\n\n", "It is", hello)
}

func TestNew(t *testing.T) {
	for _, c := range []struct {
		name string
		env  map[string]string
		want string // the error, or the text of the model
	}{
		{"nothing", nil, "google: GEMINI_API_KEY is not set: set it to a key of https://aistudio.google.com/apikey"},
		{"no key", map[string]string{urlVar: "http://localhost:1"}, "google: GEMINI_API_KEY is not set: set it to a key of https://aistudio.google.com/apikey"},
		{"key", map[string]string{keyVar: wiretest.Key}, "google at https://generativelanguage.googleapis.com"},
		{"other key", map[string]string{otherKeyVar: wiretest.Key}, "google at https://generativelanguage.googleapis.com"},
		{"no address", map[string]string{keyVar: "k", urlVar: "//x"}, "google: GOOGLE_GEMINI_BASE_URL is not an address: it must begin with http:// or https://, for example http://localhost:8080"},
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
		{"no model", agent.Request{}, `google: no model is set: name one, for example "gemini-2.5-flash"`},
		{"bad model", agent.Request{Model: "../x"}, `google: "../x" is not the name of a model: expected one such as "gemini-2.5-flash"`},
		{"role", agent.Request{Model: "m", Messages: []agent.Message{{Role: "system"}}}, `google: messages[0]: expected the role user, assistant or tool, got "system"`},
		{"schema", agent.Request{Model: "m", Tools: []agent.ToolSpec{{Name: "a", Parameters: json.RawMessage(`null`)}}}, `google: tool "a": parameters must be a JSON Schema object`},
		{"choice", agent.Request{Model: "m", Tools: specs, ToolChoice: "maybe"}, `google: tool_choice: expected auto, required or none, got "maybe"`},
		{"parameters", agent.Request{Model: "m", Parameters: json.RawMessage(`{"contents":[]}`)}, `google: parameters: "contents" cannot be set: toolctl sets it`},
		{"config", agent.Request{Model: "m", Parameters: json.RawMessage(`{"generationConfig":3}`)}, `google: parameters.generationConfig must be a JSON object`},
		{"base64", agent.Request{Model: "m", Messages: user(v1.Part{Type: "image", Data: "?", MIMEType: "image/png"})}, `google: messages[0]: parts[0]: data is not base64: illegal base64 data at input byte 0`},
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
	p, err := a.Encode(configured, false)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{weatherSchema, string(schema)} {
		if !strings.Contains(string(body), want) {
			t.Errorf("expected %s in %s", want, body)
		}
	}
}

func TestStructured(t *testing.T) {
	m := open(t, "http://127.0.0.1:1", wiretest.Transport(t)).(*Model)
	for text, want := range map[string]bool{string(schema): true, `{"type":"array"}`: false, `{}`: false, `[`: false} {
		if got := m.Structured(json.RawMessage(text)); got != want {
			t.Errorf("Structured(%s): expected %t", text, want)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	wiretest.Fuzz(f, func(transport http.RoundTripper) (agent.Model, error) {
		return New(Options{Transport: transport, Env: env(map[string]string{keyVar: wiretest.Key})})
	}, hello)
}
