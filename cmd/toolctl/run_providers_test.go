package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// TestRunWithEachProvider runs a prompt with each provider against a fake of its API: the model calls a tool, gets its
// result, and answers; streamed and not streamed.
func TestRunWithEachProvider(t *testing.T) {
	event := func(name, data string) string {
		if name != "" {
			name = "event: " + name + "\n"
		}
		return name + "data: " + data + "\n\n"
	}
	openAIChunk := func(delta, finish string) string {
		return event("", `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[{"index":0,"delta":`+delta+`,"finish_reason":`+finish+`}]}`)
	}
	providers := []struct {
		name, base, key string
		call, text      string // replies that are not streamed
		callStream      string
		textStream      string
		result          string // the tool's result as the second request contains it
	}{
		{
			name: "openai", base: "OPENAI_BASE_URL", key: "OPENAI_API_KEY",
			call:       `{"id":"c1","object":"chat.completion","created":1,"model":"m-1","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"get-weather","arguments":"{\"location\":\"Oslo\"}"}}]}}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`,
			text:       `{"id":"c2","object":"chat.completion","created":1,"model":"m-1","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Take a coat."}}],"usage":{"prompt_tokens":20,"completion_tokens":4,"total_tokens":24}}`,
			callStream: openAIChunk(`{"role":"assistant","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"get-weather","arguments":"{\"location\":"}}]}`, "null") + openAIChunk(`{"tool_calls":[{"index":0,"function":{"arguments":"\"Oslo\"}"}}]}`, "null") + openAIChunk(`{}`, `"tool_calls"`) + "data: [DONE]\n\n",
			textStream: openAIChunk(`{"role":"assistant","content":"Take "}`, "null") + openAIChunk(`{"content":"a coat."}`, "null") + openAIChunk(`{}`, `"stop"`) + "data: [DONE]\n\n",
			result:     `"tool_call_id":"call_1"`,
		},
		{
			name: "anthropic", base: "ANTHROPIC_BASE_URL", key: "ANTHROPIC_API_KEY",
			call: `{"id":"m1","type":"message","role":"assistant","model":"m-1","content":[{"type":"tool_use","id":"call_1","name":"get-weather","input":{"location":"Oslo"}}],"stop_reason":"tool_use","usage":{"input_tokens":10,"output_tokens":5}}`,
			text: `{"id":"m2","type":"message","role":"assistant","model":"m-1","content":[{"type":"text","text":"Take a coat."}],"stop_reason":"end_turn","usage":{"input_tokens":20,"output_tokens":4}}`,
			callStream: event("message_start", `{"type":"message_start","message":{"id":"m1","type":"message","role":"assistant","model":"m-1","content":[],"stop_reason":null,"usage":{"input_tokens":10,"output_tokens":1}}}`) +
				event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"call_1","name":"get-weather","input":{}}}`) +
				event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"location\":\"Oslo\"}"}}`) +
				event("content_block_stop", `{"type":"content_block_stop","index":0}`) +
				event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":5}}`) + event("message_stop", `{"type":"message_stop"}`),
			textStream: event("message_start", `{"type":"message_start","message":{"id":"m2","type":"message","role":"assistant","model":"m-1","content":[],"stop_reason":null,"usage":{"input_tokens":20,"output_tokens":1}}}`) +
				event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`) +
				event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Take "}}`) +
				event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a coat."}}`) +
				event("content_block_stop", `{"type":"content_block_stop","index":0}`) +
				event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4}}`) + event("message_stop", `{"type":"message_stop"}`),
			result: `"tool_use_id":"call_1"`,
		},
		{
			name: "google", base: "GOOGLE_GEMINI_BASE_URL", key: "GEMINI_API_KEY",
			call:       `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"get-weather","args":{"location":"Oslo"}}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5},"modelVersion":"m-1"}`,
			text:       `{"candidates":[{"content":{"role":"model","parts":[{"text":"Take a coat."}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":20,"candidatesTokenCount":4},"modelVersion":"m-1"}`,
			callStream: event("", `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"get-weather","args":{"location":"Oslo"}}}]},"finishReason":"STOP"}],"modelVersion":"m-1"}`),
			textStream: event("", `{"candidates":[{"content":{"role":"model","parts":[{"text":"Take "}]}}]}`) + event("", `{"candidates":[{"content":{"role":"model","parts":[{"text":"a coat."}]},"finishReason":"STOP"}]}`),
			result:     `"functionResponse"`,
		},
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "m.yaml"), `apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: get-weather}
spec: {description: Weather, input_schema: {type: object, properties: {location: {type: string}}, required: [location]}, mock_template: '{"celsius": 4}'}
---
apiVersion: toolctl.dev/v1
kind: Prompt
metadata: {name: advice}
spec: {template: "What should I pack for {{.city}}?", model: m-1, tools: [get-weather]}
`)
	const secret = "key-of-the-test-0123456789"
	for _, p := range providers {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stream=%v", p.name, stream), func(t *testing.T) {
				var asked atomic.Int32
				api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, err := io.ReadAll(r.Body)
					if err != nil || !json.Valid(body) {
						t.Errorf("the request is %q, %v", body, err)
					}
					if all := fmt.Sprint(r.Header, r.URL); !strings.Contains(all, secret) {
						t.Errorf("no key in %s", all)
					}
					n := asked.Add(1)
					if second := bytes.Contains(body, []byte(p.result)); second != (n == 2) {
						t.Errorf("request %d has a result: %v\n%s", n, second, body)
					}
					reply, typ := p.call, "application/json"
					switch {
					case stream && n == 1:
						reply, typ = p.callStream, "text/event-stream"
					case stream:
						reply, typ = p.textStream, "text/event-stream"
					case n == 2:
						reply = p.text
					}
					w.Header().Set("Content-Type", typ)
					_, _ = io.WriteString(w, reply)
				}))
				defer api.Close()
				t.Setenv(p.base, api.URL)
				t.Setenv(p.key, secret)
				args := []string{"run", "-f", dir, "advice", "-a", "city=Oslo", "--provider", p.name, "-v"}
				if stream {
					args = append(args, "--stream")
				}
				var out, errs bytes.Buffer
				if code := run(context.Background(), args, strings.NewReader(""), &out, &errs); code != exitOK {
					t.Fatalf("exit code %d: %s", code, errs.String())
				}
				if got := strings.TrimSpace(out.String()); !strings.HasSuffix(got, "Take a coat.") || asked.Load() != 2 {
					t.Errorf("got %q after %d requests", got, asked.Load())
				}
				if strings.Contains(out.String()+errs.String(), secret) {
					t.Error("the key shows")
				}
			})
		}
		t.Run(p.name+"/no key", func(t *testing.T) {
			t.Setenv(p.base, "")
			t.Setenv(p.key, "")
			var out, errs bytes.Buffer
			code := run(context.Background(), []string{"run", "-f", dir, "advice", "-a", "city=Oslo", "--provider", p.name}, strings.NewReader(""), &out, &errs)
			if code == exitOK || !strings.Contains(errs.String(), p.key) {
				t.Errorf("exit code %d: %s", code, errs.String())
			}
		})
	}
}

// TestJudgeOverHTTP checks that the judge of 'toolctl test' uses the key, the address and the output schema of its
// provider.
func TestJudgeOverHTTP(t *testing.T) {
	const secret = "key-of-the-test-0123456789"
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Model    string
			Messages []struct{ Role, Content string }
			Format   struct {
				Schema struct{ Strict bool } `json:"json_schema"`
			} `json:"response_format"`
			MaxTokens int `json:"max_tokens"`
			Tools     []any
		}
		err := json.NewDecoder(r.Body).Decode(&req)
		if err != nil || r.Header.Get("Authorization") != "Bearer "+secret || req.Model != "qwen3:8b" || !req.Format.Schema.Strict || req.MaxTokens != 4096 || req.Tools != nil {
			t.Errorf("%v, %v, %+v", err, r.Header, req)
		}
		if m := req.Messages; len(m) != 2 || !strings.Contains(m[0].Content, "Criteria:\npolite") || m[1].Content != `{"agent_answer":"Go away."}` {
			t.Errorf("messages %+v", m)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"{\"passed\":false,\"score\":0.1,\"reasoning\":\"It is rude.\"}"}}],"usage":{"prompt_tokens":120,"completion_tokens":14,"total_tokens":134}}`)
	}))
	defer api.Close()
	t.Setenv("OPENAI_BASE_URL", api.URL)
	t.Setenv("OPENAI_API_KEY", secret)
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "s.yaml"), `apiVersion: toolctl.dev/v1
kind: Scenario
metadata: {name: s}
spec:
  turns: [{user: Hello, model: [{text: Go away.}], assertions: [{type: llm_judge, params: {criteria: polite}}]}]
`)
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"test", dir, "--judge-model", "openai:qwen3:8b"}, strings.NewReader(""), &out, &errs)
	for _, want := range []string{"not passed, score 0.1: It is rude.", "judge model: 1 call, 120 tokens in, 14 out"} {
		if code != exitFailed || !strings.Contains(out.String(), want) {
			t.Errorf("exit code %d, without %q: %s%s", code, want, out.String(), errs.String())
		}
	}
}
