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
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/redact"
	"toolctl.dev/toolctl/pkg/agent"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-test-4f7d2c9b8a61e053"

// ask sends one request through a client, and reads the answer.
func ask(c *Client, url string) func(context.Context, *agent.Reply) error {
	return func(ctx context.Context, r *agent.Reply) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("{}"))
		if err != nil {
			return err
		}
		resp, err := c.http.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		n, err := io.Copy(io.Discard, resp.Body)
		r.Usage.OutputTokens = n
		return err
	}
}

func client(t *testing.T, url string) *Client {
	tr := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(tr.CloseIdleConnections)
	return New(Config{Name: "x", KeyVar: "X_KEY", URLVar: "X_URL", BaseURL: url, Secrets: []string{key, ""}, Transport: tr})
}

func TestAnswerIsBounded(t *testing.T) {
	for _, c := range []struct {
		name  string
		bytes int
		media string
		err   string
	}{
		{"just allowed", maxAnswer, "application/json", ""},
		{"too large", maxAnswer + 1, "application/json", "x: the answer is larger than 32 MiB"},
		{"too large a stream", maxAnswer + 1<<20, "text/event-stream", "x: the answer is larger than 32 MiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", c.media)
				io.CopyN(w, zeros{}, int64(c.bytes))
			}))
			defer s.Close()
			m := client(t, s.URL)
			reply, err := m.Do(t.Context(), ask(m, s.URL))
			if text(err) != c.err {
				t.Errorf("expected %q, got %v", c.err, err)
			}
			if got := reply.Usage.OutputTokens; got != int64(min(c.bytes, maxAnswer)) {
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
	m := client(t, s.URL)
	_, err := m.Do(t.Context(), ask(m, s.URL))
	var refused *agent.ModelError
	if !errors.As(err, &refused) || refused.Status != 400 || len(refused.Message) > maxMessage+len("…") {
		t.Fatalf("got %d bytes: %.80v", len(text(err)), err)
	}
	if strings.Contains(err.Error(), "sk-test") {
		t.Errorf("half of the key shows: %s", err)
	}
}

func TestDo(t *testing.T) {
	m := client(t, "http://127.0.0.1:1")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	asked := func(err error) func(context.Context, *agent.Reply) error {
		return func(_ context.Context, r *agent.Reply) error { r.Model = "m"; return err }
	}
	for _, c := range []struct {
		name string
		ctx  context.Context
		ask  func(context.Context, *agent.Reply) error
		want string
	}{
		{"well", t.Context(), asked(nil), ""},
		{"ended before", ended, asked(nil), "context canceled"},
		{"it cannot be made", t.Context(), asked(fmt.Errorf("bad %s", key)), "x: the request cannot be made: bad [REDACTED]"},
		{"typed", t.Context(), asked(fmt.Errorf("in: %w", m.Invalid("bad"))), "x: bad"},
		{"refused", t.Context(), asked(&agent.ModelError{Type: strings.Repeat("t", 200), Message: "m\x1b[2J" + key}), "x: m [2J[REDACTED] (" + strings.Repeat("t", maxType) + "…)"},
		{"a panic", t.Context(), func(_ context.Context, r *agent.Reply) error { r.Model = "m"; panic("oh " + key) }, "x: the request cannot be made: its reader failed: oh [REDACTED]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			reply, err := m.Do(c.ctx, c.ask)
			if text(err) != c.want {
				t.Errorf("expected %q, got %v", c.want, err)
			}
			if reply.Model == "" && c.ctx != ended {
				t.Error("the reply is lost")
			}
		})
	}
}

func TestRequestOutsideOfDo(t *testing.T) {
	m := client(t, "http://127.0.0.1:1")
	if err := ask(m, "http://127.0.0.1:1")(t.Context(), &agent.Reply{}); err == nil || !strings.HasSuffix(err.Error(), "a request outside of a call") {
		t.Errorf("got %v", err)
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
	m := client(t, s.URL)
	if _, err := m.Do(ctx, ask(m, s.URL)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if len(calls) != 1 {
		t.Errorf("%d requests", len(calls))
	}
}

func TestRetryAfter(t *testing.T) {
	for _, c := range []struct {
		name   string
		header http.Header
		want   time.Duration
		ok     bool
	}{
		{"none", nil, 0, false},
		{"seconds", http.Header{"Retry-After": {"2"}}, 2 * time.Second, true},
		{"parts of a second", http.Header{"Retry-After": {"0.5"}}, 500 * time.Millisecond, true},
		{"milliseconds win", http.Header{"Retry-After": {"2"}, "Retry-After-Ms": {"10"}}, 10 * time.Millisecond, true},
		{"a date long ago", http.Header{"Retry-After": {"Wed, 21 Oct 2015 07:28:00 GMT"}}, 0, true},
		{"too large a number", http.Header{"Retry-After": {"1e300"}}, 24 * time.Hour, true},
		{"negative", http.Header{"Retry-After": {"-1"}}, 0, false},
		{"no number", http.Header{"Retry-After": {"NaN"}}, 0, false},
		{"a word", http.Header{"Retry-After": {"soon"}}, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := retryAfter(&http.Response{Header: c.header})
			if got != c.want || ok != c.ok {
				t.Errorf("expected %v %t, got %v %t", c.want, c.ok, got, ok)
			}
		})
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
			if e := APIError([]byte(c.body)); e.Message != c.message || e.Type != c.typ {
				t.Errorf("expected %q %q, got %q %q", c.message, c.typ, e.Message, e.Type)
			}
		})
	}
}

func FuzzAPIError(f *testing.F) {
	f.Add([]byte(`[{"error":{"message":"m","type":"t","code":"c"}}]`))
	f.Add([]byte(`{"error":"m","message":{"a":[1]}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if APIError(body) == nil {
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
	if got := CallID(req, 1); got != "call_4" {
		t.Errorf("got %s", got)
	}
}

func TestParameters(t *testing.T) {
	for _, c := range []struct{ name, in, want, err string }{
		{"none", ``, `null`, ""},
		{"null", `null`, `null`, ""},
		{"renamed", `{"stop":"x","top_p":1.0}`, `{"stops":["x"],"top_p":1.0}`, ""},
		{"taken", `{"stop":"x","stops":["y"]}`, `{"stops":["y"]}`, ""},
		{"reserved", `{"model":"x"}`, "", `parameters: "model" is not a parameter: the request sets it`},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := Parameters(json.RawMessage(c.in), "model")
			if text(err) != c.err {
				t.Fatalf("expected %q, got %v", c.err, err)
			}
			if err != nil {
				return
			}
			Rename(m, "stop", "stops")
			List(m, "stops")
			if got, err := json.Marshal(m); err != nil || string(got) != c.want {
				t.Errorf("expected %s, got %s, %v", c.want, got, err)
			}
		})
	}
}

func TestFlatten(t *testing.T) {
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
			media, err := Flatten([]v1.Part{c.part})
			for _, m := range media {
				got = strings.TrimSpace(strings.Join([]string{m.Kind, m.Text + m.MIME, m.Data, m.URL, m.Name}, " "))
				got = strings.ReplaceAll(got, "image  ", "image")
			}
			if err != nil {
				got = err.Error()
			}
			if strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(c.want), " ") {
				t.Errorf("expected %q, got %q", c.want, got)
			}
		})
	}
}
