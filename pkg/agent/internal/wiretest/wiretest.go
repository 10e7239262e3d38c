// Package wiretest replays recorded exchanges with the API of a model, on loopback.
//
// An exchange is a txtar archive. It has pairs of "request.json", the expected request, and "response.http", the
// response of the server. The expected results follow in "reply.json", "deltas.txt" and "error.txt". UPDATE_WIRE=1
// rewrites all files except the responses.
package wiretest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/agent/internal/provider"
)

// Key is the key of every test. No output of a model may contain it.
const Key = "sk-test-4f7d2c9b8a61e053"

// Case is one recorded exchange.
type Case struct {
	// Name is the archive's name in testdata, without ".txtar".
	Name    string
	Request agent.Request
	// Stream requests a streamed reply.
	Stream bool
}

// Open creates the model under test for a server at url, with Key.
type Open func(t *testing.T, url string, transport http.RoundTripper) agent.Model

// Run runs the cases. It calls check with every request, for its headers and path.
func Run(t *testing.T, cases []Case, open Open, check func(t *testing.T, r *http.Request)) {
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) { play(t, c, open, check) })
	}
}

func play(t *testing.T, c Case, open Open, check func(*testing.T, *http.Request)) {
	file := filepath.Join("testdata", c.Name+".txtar")
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, archive, check)
	model := open(t, s.URL, Transport(t))
	var deltas strings.Builder
	var on func(agent.Delta)
	if c.Stream {
		on = func(d agent.Delta) { fmt.Fprintln(&deltas, delta(d)) }
	}
	reply, err := model.Generate(t.Context(), c.Request, on)
	text := ""
	if err != nil {
		text = strings.ReplaceAll(Describe(err), s.URL, "http://server") + "\n"
	}
	got := map[string]string{"reply.json": pretty(t, reply), "deltas.txt": deltas.String(), "error.txt": text}
	for name, text := range got {
		if strings.Contains(text, Key) {
			t.Errorf("%s holds the key:\n%s", name, text)
		}
	}
	if os.Getenv("UPDATE_WIRE") != "" {
		s.update(t, file, archive, got)
		return
	}
	if n := s.count(); n != len(s.responses) {
		t.Errorf("requests: expected %d, got %d", len(s.responses), n)
	}
	for name, text := range got {
		if diff := cmp.Diff(section(archive, name), text); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Transport returns a transport whose connections are closed at the end of the test.
func Transport(t *testing.T) *http.Transport {
	tr := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// Describe returns the type and the text of an error.
func Describe(err error) string {
	var refused *agent.ModelError
	var exec *v1.ExecutionError
	switch {
	case errors.As(err, &refused):
		return "ModelError: " + err.Error()
	case errors.As(err, &exec):
		return "ExecutionError " + exec.Phase + ": " + err.Error()
	}
	return err.Error()
}

func delta(d agent.Delta) string {
	switch {
	case d.ToolCall != "":
		return "call " + d.ToolCall
	case d.Thinking != "":
		return "think " + strconv.Quote(d.Thinking)
	}
	return "text " + strconv.Quote(d.Text)
}

// server responds with the responses of an archive, in order.
type server struct {
	*httptest.Server
	requests, responses []string
	mu                  sync.Mutex
	got                 []string
}

func serve(t *testing.T, archive *txtar.Archive, check func(*testing.T, *http.Request)) *server {
	s := &server{}
	for _, f := range archive.Files {
		switch f.Name {
		case "request.json":
			s.requests = append(s.requests, string(f.Data))
		case "response.http":
			s.responses = append(s.responses, string(f.Data))
		}
	}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("request: %v", err)
		}
		check(t, r)
		s.mu.Lock()
		n := len(s.got)
		s.got = append(s.got, indent(t, body))
		s.mu.Unlock()
		if n >= len(s.responses) {
			t.Errorf("request %d is one too many", n+1)
			w.WriteHeader(http.StatusTeapot)
			return
		}
		if os.Getenv("UPDATE_WIRE") == "" {
			want := s.requests[min(n, len(s.requests)-1)] // a retry repeats the last request
			if diff := cmp.Diff(value(t, []byte(want)), value(t, body)); diff != "" {
				t.Errorf("request %d (-want +got):\n%s", n+1, diff)
			}
		}
		answer(t, w, s.responses[n])
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.got)
}

// answer writes "STATUS", header lines, an empty line and the body. The header
// "X-Test: break" breaks the connection after the body.
func answer(t *testing.T, w http.ResponseWriter, text string) {
	status, rest, _ := strings.Cut(text, "\n")
	r := textproto.NewReader(bufio.NewReader(strings.NewReader(rest)))
	header, err := r.ReadMIMEHeader()
	if err != nil {
		t.Errorf("response: %v", err)
	}
	body, err := io.ReadAll(r.R)
	if err != nil {
		t.Errorf("response: %v", err)
	}
	maps.Copy(w.Header(), header)
	code, err := strconv.Atoi(strings.TrimSpace(status))
	if err != nil {
		t.Errorf("response: %v", err)
	}
	w.WriteHeader(code)
	flush := http.NewResponseController(w)
	for _, event := range bytes.SplitAfter(body, []byte("\n\n")) { // send events one by one, like a real stream
		if _, err := w.Write(event); err != nil || flush.Flush() != nil {
			return // the client has closed the connection, and its test reports why
		}
	}
	if header.Get("X-Test") == "break" {
		panic(http.ErrAbortHandler)
	}
}

func section(a *txtar.Archive, name string) string {
	for _, f := range a.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

func (s *server) update(t *testing.T, file string, a *txtar.Archive, got map[string]string) {
	out := &txtar.Archive{Comment: a.Comment}
	for i, r := range s.responses {
		if i < len(s.got) && (i == 0 || s.got[i] != s.got[i-1]) {
			out.Files = append(out.Files, txtar.File{Name: "request.json", Data: []byte(s.got[i])})
		}
		out.Files = append(out.Files, txtar.File{Name: "response.http", Data: []byte(r)})
	}
	for _, name := range []string{"reply.json", "deltas.txt", "error.txt"} {
		if got[name] != "" {
			out.Files = append(out.Files, txtar.File{Name: name, Data: []byte(got[name])})
		}
	}
	if err := os.WriteFile(file, txtar.Format(out), 0o644); err != nil {
		t.Fatal(err)
	}
}

func pretty(t *testing.T, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return indent(t, b)
}

func indent(t *testing.T, b []byte) string {
	var out bytes.Buffer
	if err := json.Indent(&out, b, "", "  "); err != nil {
		t.Errorf("no JSON: %v: %s", err, b)
	}
	return out.String() + "\n"
}

// value decodes JSON for comparison: it ignores the order of keys and keeps all digits.
func value(t *testing.T, b []byte) any {
	var v any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Errorf("no JSON: %v: %s", err, b)
	}
	return v
}

// Same reports the differences between the replies of two archives that have the same answer, one streamed and one
// not.
func Same(t *testing.T, one, other string) {
	t.Helper()
	read := func(name string) string {
		a, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
		if err != nil {
			t.Fatal(err)
		}
		return section(a, "reply.json")
	}
	a, b := read(one), read(other)
	if a == "" {
		t.Fatalf("%s has no reply", one)
	}
	if diff := cmp.Diff(value(t, []byte(a)), value(t, []byte(b))); diff != "" {
		t.Errorf("the replies of %s and %s differ:\n%s", one, other, diff)
	}
}

// Answers serves the same response to every request. It is for tests that do not replay an exchange.
func Answers(t *testing.T, status int, header http.Header, body string) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		maps.Copy(w.Header(), header)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// Hangs serves the beginning of a stream and then keeps the connection open until the client closes it.
func Hangs(t *testing.T, beginning string) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // net/http notices a closed connection only after the body was read
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, beginning)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// Cancel cancels the context in the middle of a stream. It expects the error of the context, and the part of the reply
// that came before.
func Cancel(t *testing.T, open Open, beginning, text string, req agent.Request) {
	t.Helper()
	model := open(t, Hangs(t, beginning), Transport(t))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reply, err := model.Generate(ctx, req, func(agent.Delta) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error: expected that of the context, got %v", err)
	}
	if reply.Message.Text != text {
		t.Errorf("text before the end: expected %q, got %q", text, reply.Message.Text)
	}
}

// Fuzz sends arbitrary responses to a model, whole and streamed, starting with those in testdata. The model must
// return a reply or an error, and never the key.
func Fuzz(f *testing.F, open func(transport http.RoundTripper) (agent.Model, error), req agent.Request) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		f.Fatal("no testdata", err)
	}
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		_, body, _ := strings.Cut(section(a, "response.http"), "\n\n")
		f.Add([]byte(body), strings.Contains(file, "stream"))
	}
	f.Fuzz(func(t *testing.T, body []byte, stream bool) {
		media := "application/json"
		var on func(agent.Delta)
		if stream {
			media, on = "text/event-stream", func(agent.Delta) {}
		}
		requests := 0
		model, err := open(roundTrip(func(r *http.Request) (*http.Response, error) {
			requests++
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {media}}, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		reply, err := model.Generate(t.Context(), req, on)
		if err != nil {
			if text := err.Error(); strings.Contains(text, provider.Panicked) {
				t.Errorf("a panic: %s", text)
			}
			if len(err.Error()) > 3000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		}
		// Every reply that the model accepts can be sent back.
		next := agent.Request{Model: req.Model, Messages: append(req.Messages[:len(req.Messages):len(req.Messages)], reply.Message)}
		for _, c := range reply.Message.ToolCalls {
			if c.ID == "" {
				t.Errorf("a call without an id: %+v", c)
			}
			next.Messages = append(next.Messages, agent.Message{Role: agent.RoleTool, ToolCallID: c.ID, Tool: c.Name, Text: "x"})
		}
		next.Messages[len(req.Messages)].Parts = nil // some APIs do not accept the parts that they return
		before := requests
		if _, err := model.Generate(t.Context(), next, on); requests == before {
			t.Errorf("the reply cannot be sent back: %v", err)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
