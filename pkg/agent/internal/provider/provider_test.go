package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/redact"
	"toolctl.dev/toolctl/pkg/agent"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-test-4f7d2c9b8a61e053"

// counter is a reader that counts its calls.
type counter struct {
	*Builder
	broken func() error
}

func (c *counter) Read(data []byte) error {
	c.Usage.OutputTokens += int64(len(data))
	c.Ended, c.Model = true, "m"
	if c.broken != nil {
		return c.broken()
	}
	return nil
}

func (*counter) Kept() *Kept { return nil }

func model(t *testing.T, base string, broken func() error) *Model {
	tr := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(tr.CloseIdleConnections)
	env := func(name string) (string, bool) { return map[string]string{"X_KEY": key, "X_URL": base}[name], true }
	m, err := New(Options{Transport: tr, Env: env}, API{
		Name: "x", Keys: []Key{{Var: "X_KEY", Header: "X-Key"}}, URLVar: "X_URL",
		Body:   func(Object, agent.Request, []any, Object) error { return nil },
		Reader: func(b *Builder) Reader { return &counter{b, broken} },
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var question = agent.Request{Model: "m"}

func TestAnswerIsBounded(t *testing.T) {
	for _, c := range []struct {
		name  string
		bytes int
		media string
		on    func(agent.Delta)
		err   string
	}{
		{"just allowed", maxAnswer, "application/json", nil, ""},
		{"too large", maxAnswer + 1, "application/json", nil, "x: the response is larger than 32 MiB"},
		{"too large a stream", maxAnswer + 1, "text/event-stream", func(agent.Delta) {}, "x: the response is larger than 32 MiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", c.media)
				io.CopyN(w, zeros{}, int64(c.bytes))
			}))
			defer s.Close()
			reply, err := model(t, s.URL, nil).Generate(t.Context(), question, c.on)
			if text(err) != c.err {
				t.Errorf("expected %q, got %v", c.err, err)
			}
			if got := reply.Usage.OutputTokens; c.err == "" && got != int64(c.bytes) {
				t.Errorf("read %d bytes", got)
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestErrorBodyIsBounded(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, strings.Repeat("a", maxMessage-10)+key+strings.Repeat("b", 1<<20))
	}))
	defer s.Close()
	_, err := model(t, s.URL, nil).Generate(t.Context(), question, nil)
	var refused *agent.ModelError
	if !errors.As(err, &refused) || refused.Status != 400 || len(refused.Message) > maxMessage+len("…") {
		t.Fatalf("got %d bytes: %.80v", len(text(err)), err)
	}
	if strings.Contains(err.Error(), "sk-test") {
		t.Errorf("half of the key shows: %s", err)
	}
}

func TestGenerate(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, "{}")
	}))
	defer s.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	returns := func(err error) func() error { return func() error { return err } }
	for _, c := range []struct {
		name   string
		ctx    context.Context
		broken func() error
		want   string
	}{
		{"well", t.Context(), nil, ""},
		{"ended before", ended, nil, "context canceled"},
		{"it cannot be read", t.Context(), returns(fmt.Errorf("bad %s", key)), "x: the response cannot be read: bad [REDACTED]"},
		{"typed", t.Context(), returns(fmt.Errorf("in: %w", &v1.ExecutionError{Phase: v1.PhaseValidate, Message: "x: bad"})), "x: bad"},
		{"refused", t.Context(), returns(&agent.ModelError{Type: strings.Repeat("t", 200), Message: "m\x1b[2J" + key}), "x: m [2J[REDACTED] (" + strings.Repeat("t", maxType) + "…)"},
		{"a panic", t.Context(), func() error { panic("oh " + key) }, "x: the response cannot be read: reading it failed: oh [REDACTED]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			reply, err := model(t, s.URL, c.broken).Generate(c.ctx, question, nil)
			if text(err) != c.want {
				t.Errorf("expected %q, got %v", c.want, err)
			}
			if reply.Model == "" && c.ctx != ended {
				t.Error("the reply is lost")
			}
		})
	}
}

type taker func([]byte)

func (f taker) Read(data []byte) error { f(data); return nil }

func (taker) Kept() *Kept { return nil }

func TestEvents(t *testing.T) {
	for _, c := range []struct{ name, stream, want, err string }{
		{"lines", "data: {\ndata:}\n\ndata: {}\r\n\r\n", "{\n}|{}|", ""},
		{"no end", "data: {}\n\ndata: {}\n", "{}|", ""},
		{"done", "data: {}\n\ndata: [DONE]\n\ndata: {}\n\n", "{}|", ""},
		{"comments and names", ": x\nid: 1\nevent: ping\n\ndata: {}\n\n", "{}|", ""},
		{"an error", `data: {"error":{"message":"m","code":503}}` + "\n\n", "", ": m (status 503)"},
		{"a code that is no status", `data: {"error":{"message":"m","code":7}}` + "\n\n", "", ": m"},
		{"an event that is an error", "event: error\n" + `data: {"message":"m"}` + "\n\n", "", ": m"},
		{"no error", `data: {"error":null}` + "\n\n", `{"error":null}|`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got strings.Builder
			err := (&Model{}).events(strings.NewReader(c.stream), &Builder{Ended: true}, taker(func(data []byte) { fmt.Fprintf(&got, "%s|", data) }))
			if got.String() != c.want || text(err) != c.err {
				t.Errorf("got %q, %v", got.String(), err)
			}
		})
	}
}

func TestStop(t *testing.T) {
	for _, c := range []struct {
		word  string
		calls bool
		want  string
	}{
		{"stop", false, "end"}, {"STOP", true, "tool_calls"}, {"end_turn", false, "end"}, {"tool_use", true, "tool_calls"},
		{"MAX_TOKENS", true, "length"}, {"SPII", false, "filter"}, {"pause_turn", false, "pause_turn"}, {"OTHER", false, "other"}, {"", true, ""},
	} {
		if got := stop(c.word, c.calls); got != c.want {
			t.Errorf("%q, %t: expected %q, got %q", c.word, c.calls, c.want, got)
		}
	}
}

func TestNoRetryWhenTheCallerLeft(t *testing.T) {
	calls := make(chan struct{}, 10)
	ctx, cancel := context.WithCancel(t.Context())
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		calls <- struct{}{}
		w.Header().Set("Retry-After", "20")
		w.WriteHeader(http.StatusTooManyRequests)
		http.NewResponseController(w).Flush()
		cancel()
	}))
	defer s.Close()
	if _, err := model(t, s.URL, nil).Generate(ctx, question, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if len(calls) != 1 {
		t.Errorf("%d requests", len(calls))
	}
}

func TestWaitIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		attempt := rapid.IntRange(0, 100).Draw(t, "attempt")
		if d := wait(0, 0, attempt, nil); d <= 0 || d > maxBackoff {
			t.Errorf("got %v", d)
		}
		resp := &http.Response{Header: http.Header{"Retry-After": {rapid.String().Draw(t, "header")}}}
		if d := wait(0, 0, attempt, resp); d < 0 || d > maxRetryAfter {
			t.Errorf("got %v", d)
		}
	})
}

func TestAgain(t *testing.T) {
	for _, c := range []struct {
		status int
		header http.Header
		want   bool
	}{
		{200, nil, false}, {400, nil, false}, {401, nil, false}, {408, nil, true}, {409, nil, true}, {429, nil, true}, {500, nil, true}, {529, nil, true},
		{429, http.Header{"Retry-After": {"30"}}, true},
		{429, http.Header{"Retry-After": {"31"}}, false},
		{500, http.Header{"X-Should-Retry": {"false"}}, false},
		{400, http.Header{"X-Should-Retry": {"true"}}, true},
	} {
		got, err := again(t.Context(), &http.Response{StatusCode: c.status, Header: c.header}, nil)
		if got != c.want || err != nil {
			t.Errorf("%d %v: expected %t, got %t, %v", c.status, c.header, c.want, got, err)
		}
	}
}

func TestClean(t *testing.T) {
	s := redact.New(nil, key, `a"bcde`, "k", "")
	for in, want := range map[string]string{
		"plain": "plain", "x " + key + ", y": "x [REDACTED], y", key + key: "[REDACTED][REDACTED]", `{"a":"a\"bcde"}`: `{"a":"[REDACTED]"}`, "looking at k": "looking at [REDACTED]",
		"sk-proj-****abcd, no": "[REDACTED], no", "line\nend\x00\x1b[31m": "line end  [31m", "\xff": "", "**bold**": "**bold**",
	} {
		if got := clean(s, in, 1000); got != want {
			t.Errorf("clean(%q): expected %q, got %q", in, want, got)
		}
	}
	if got := clean(s, "aéé", 2); got != "a…" {
		t.Errorf("cut: got %q", got)
	}
}

func TestCleanHidesEverySecret(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[a-zA-Z0-9_./+=-]{8,40}`).Draw(t, "secret")
		around := rapid.SliceOf(rapid.SampledFrom([]string{secret, secret[:1], "\x1b", "é", " ", "***", `"`, "\\", "\n"})).Draw(t, "around")
		most := rapid.IntRange(0, 200).Draw(t, "most")
		got := clean(redact.New(nil, secret), strings.Join(around, ""), most)
		if strings.Contains(got, secret) || len(got) > most+len("…") {
			t.Errorf("got %q", got)
		}
	})
}

func TestAPIError(t *testing.T) {
	for _, c := range []struct{ name, body, message, typ string }{
		{"openai", `{"error":{"message":"m","type":"t","code":"c"}}`, "m", "t"},
		{"without type", `{"error":{"message":"m","type":null,"code":"c"}}`, "m", "c"},
		{"anthropic", `{"type":"error","error":{"type":"t","message":"m"}}`, "m", "t"},
		{"google", `{"error":{"code":400,"message":"m","status":"S"}}`, "m", "S"},
		{"a list", `[{"error":{"code":400,"message":"m","status":"S"}}]`, "m", "S"},
		{"ollama", `{"error":"m"}`, "m", ""},
		{"vllm", `{"object":"error","message":"m","type":"T","code":404}`, "m", "T"},
		{"fastapi", `{"detail":[{"msg":"m"}]}`, `[{"msg":"m"}]`, ""},
		{"text", "m\n", "m", ""},
		{"a page", "<html>", "", ""},
		{"empty", "", "", ""},
		{"empty error", `{"error":{}}`, "", ""},
		{"odd error", `{"error":[1],"message":"m"}`, "m", ""},
		{"odd message", `{"error":{"message":{"a":1}}}`, `{"a":1}`, ""},
		{"a number", `7`, "7", ""},
		{"bytes", "\xff\xfe", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if e := apiError([]byte(c.body)); e.Message != c.message || e.Type != c.typ {
				t.Errorf("expected %q %q, got %q %q", c.message, c.typ, e.Message, e.Type)
			}
		})
	}
}

func FuzzAPIError(f *testing.F) {
	f.Add([]byte(`[{"error":{"message":"m","type":"t","code":"c"}}]`))
	f.Add([]byte(`{"error":"m","message":{"a":[1]}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if apiError(body) == nil {
			t.Error("no error")
		}
	})
}

func TestArguments(t *testing.T) {
	for in, want := range map[string]string{
		"": "{}", " ": "{}", `{"a":1.0}`: `{"a":1.0}`, ` {"a":1} `: `{"a":1}`,
		`{"a":`: `{"INVALID_JSON":"{\"a\":"}`, `[1]`: `{"INVALID_JSON":"[1]"}`, `null`: `{"INVALID_JSON":"null"}`,
	} {
		if got := string(Arguments(in)); got != want {
			t.Errorf("Arguments(%q): expected %s, got %s", in, want, got)
		}
	}
}

func TestCallID(t *testing.T) {
	req := agent.Request{Messages: []agent.Message{{}, {ToolCalls: make([]agent.ToolCall, 2)}}}
	if got := callID(req, 1); got != "call_4" {
		t.Errorf("got %s", got)
	}
}

func TestParameters(t *testing.T) {
	for _, c := range []struct{ name, in, want, err string }{
		{"none", ``, `{}`, ""},
		{"null", `null`, `{}`, ""},
		{"renamed", `{"stop":"x","top_p":1.0}`, `{"stops":["x"],"top_p":1.0}`, ""},
		{"taken", `{"stop":"x","stops":["y"]}`, `{"stops":["y"]}`, ""},
		{"reserved", `{"model":"x"}`, "", `parameters: "model" cannot be set: toolctl sets it`},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := API{Reserved: []string{"model"}, Renamed: [][2]string{{"stop", "stops"}}, Body: func(_ Object, _ agent.Request, _ []any, extra Object) error {
				List(extra, "stops")
				return nil
			}}
			body, err := a.Encode(agent.Request{Model: "m", Parameters: json.RawMessage(c.in)}, false)
			if text(err) != c.err {
				t.Fatalf("expected %q, got %v", c.err, err)
			}
			if err != nil {
				return
			}
			if got, err := json.Marshal(body); err != nil || string(got) != c.want {
				t.Errorf("expected %s, got %s, %v", c.want, got, err)
			}
		})
	}
}

func TestContents(t *testing.T) {
	for _, c := range []struct {
		name string
		part v1.Part
		want string
	}{
		{"text", v1.Part{Type: "text", Text: "a"}, "text a"},
		{"no text", v1.Part{Type: "text"}, ""},
		{"image", v1.Part{Type: "image", Data: "AA==", MIMEType: "Image/PNG; q=1"}, "image image/png AA=="},
		{"media", v1.Part{Type: "image", Media: &v1.Media{Data: "AA==", MIMEType: "image/png"}}, "image image/png AA=="},
		{"media url", v1.Part{Type: "image", Media: &v1.Media{URL: "https://x"}}, "image https://x"},
		{"text document", v1.Part{Type: "document", Text: "a"}, "text a"},
		{"blob", v1.Part{Type: "resource", Resource: &v1.ResourceContents{URI: "u", Blob: "AA==", MIMEType: "audio/wav"}}, "audio audio/wav AA==  u"},
		{"other blob", v1.Part{Type: "resource", Resource: &v1.ResourceContents{URI: "u", Blob: "AA==", MIMEType: "application/pdf"}}, "document application/pdf AA==  u"},
		{"no resource", v1.Part{Type: "resource"}, "parts[0]: a resource without its content"},
		{"unknown", v1.Part{Type: "smell"}, `parts[0]: a part of type "smell" cannot be sent to a model`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			_, err := Contents("", []v1.Part{c.part}, func(m Media) (Object, error) {
				got = strings.TrimSpace(strings.Join([]string{m.Kind, m.Text + m.MIME, m.Data, m.URL, m.Name}, " "))
				got = strings.ReplaceAll(got, "image  ", "image")
				return nil, nil
			})
			if err != nil {
				got = err.Error()
			}
			if strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(c.want), " ") {
				t.Errorf("expected %q, got %q", c.want, got)
			}
		})
	}
}
