package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/envref"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

func TestExpand(t *testing.T) {
	env := map[string]string{"A": "one", "EMPTY": "", "SECRET": "hunter2"}
	tests := []struct{ name, text, want, violation string }{
		{name: "plain", text: "x $ {A} $A", want: "x $ {A} $A"},
		{name: "variable", text: "<${A}>${A}", want: "<one>one"},
		{name: "empty counts without a default", text: "<${EMPTY}>", want: "<>"},
		{name: "empty does not with one", text: "<${EMPTY:-d}>", want: "<d>"},
		{name: "default", text: "${NO:-a b}", want: "a b"},
		{name: "default of a set one", text: "${A:-x}", want: "one"},
		{name: "escaped", text: "$${A} ${A}", want: "${A} one"},
		{name: "unset", text: "${NO}", violation: `environment variable "NO" is not set`},
		{name: "not closed", text: "${A", violation: `"${" has no "}"; write $${ for the text itself`},
		{name: "no name", text: "${1a}", violation: `"1a" is not the name of a variable; write $${ for the text itself`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &resolver{env: envref.Env{Lookup: func(k string) (string, bool) { v, ok := env[k]; return v, ok }}, server: &v1.MCPServer{}}
			got := r.expand("/spec/env/X", tt.text)
			if tt.violation != "" {
				if len(r.violations) != 1 || r.violations[0].Message != tt.violation || r.violations[0].Path != "/spec/env/X" {
					t.Errorf("errors %v", r.violations)
				}
			} else if got != tt.want || r.err() != nil {
				t.Errorf("got %q, %v", got, r.err())
			}
		})
	}
}

func TestMaskerTakesTheLongestFirst(t *testing.T) {
	r := &resolver{secrets: []string{"hunter", "hunter2"}, server: &v1.MCPServer{}}
	s := &session{upstream: &upstream{}}
	r.mask(s)
	if got := s.mask("hunter2 and hunter"); got != "[REDACTED] and [REDACTED]" {
		t.Errorf("got %q", got)
	}
}

func TestToolResult(t *testing.T) {
	size := int64(3)
	tests := []struct {
		name    string
		raw     string
		content string
		parts   []v1.Part
		failed  bool
		broken  bool
	}{
		{name: "structured wins", raw: `{"content":[{"type":"text","text":"x"}],"structuredContent":{"n":12345678901234567890}}`, content: `{"n":12345678901234567890}`,
			parts: []v1.Part{{Type: "text", Text: "x"}}},
		{name: "structured null is none", raw: `{"content":[{"type":"text","text":"x"}],"structuredContent":null}`, content: `"x"`, parts: []v1.Part{{Type: "text", Text: "x"}}},
		{name: "text that is JSON", raw: `{"content":[{"type":"text","text":" {\"a\":1} "}]}`, content: `{"a":1}`, parts: []v1.Part{{Type: "text", Text: ` {"a":1} `}}},
		{name: "text", raw: `{"content":[{"type":"text","text":"a <b>"}]}`, content: `"a <b>"`, parts: []v1.Part{{Type: "text", Text: "a <b>"}}},
		{name: "two texts", raw: `{"content":[{"type":"text","text":"1"},{"type":"text","text":"2"}]}`, content: `"1\n2"`, parts: []v1.Part{{Type: "text", Text: "1"}, {Type: "text", Text: "2"}}},
		{name: "nothing", raw: `{"content":[]}`, content: `null`, parts: []v1.Part{}},
		{name: "no content at all", raw: `{}`, content: `null`, parts: []v1.Part{}},
		{name: "failure", raw: `{"content":[{"type":"text","text":"no"}],"isError":true}`, content: `"no"`, parts: []v1.Part{{Type: "text", Text: "no"}}, failed: true},
		{name: "every kind", raw: `{"content":[{"type":"image","data":"AA==","mimeType":"image/png","annotations":{"priority":1}},{"type":"audio","data":"AA==","mimeType":"audio/wav","_meta":{"a":1}},
			{"type":"resource","resource":{"uri":"file:///a","text":"t","mimeType":"text/plain"}},{"type":"resource_link","uri":"file:///b","name":"b","size":3}]}`, content: `null`,
			parts: []v1.Part{{Type: "image", Data: "AA==", MIMEType: "image/png", Annotations: json.RawMessage(`{"priority":1}`)}, {Type: "audio", Data: "AA==", MIMEType: "audio/wav", Meta: json.RawMessage(`{"a":1}`)},
				{Type: "resource", Resource: &v1.ResourceContents{URI: "file:///a", Text: "t", MIMEType: "text/plain"}}, {Type: "resource_link", URI: "file:///b", Name: "b", Size: &size}}},
		{name: "a kind of the future", raw: `{"content":[{"type":"hologram","x":1},{"type":"text","text":"t"}]}`, content: `"{\"type\":\"hologram\",\"x\":1}\nt"`,
			parts: []v1.Part{{Type: "text", Text: `{"type":"hologram","x":1}`}, {Type: "text", Text: "t"}}},
		{name: "a part that cannot be read", raw: `{"content":[{"type":"text","text":5},7,null]}`, content: `"{\"type\":\"text\",\"text\":5}\n7\nnull"`,
			parts: []v1.Part{{Type: "text", Text: `{"type":"text","text":5}`}, {Type: "text", Text: "7"}, {Type: "text", Text: "null"}}},
		{name: "no object", raw: `[]`, broken: true},
		{name: "content is no list", raw: `{"content":5}`, broken: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res, failed, ok := toolResult(answerWith(tt.raw))
			if ok == tt.broken || failed != tt.failed {
				t.Fatalf("ok %v, failed %v", ok, failed)
			}
			if tt.broken {
				return
			}
			if string(res.Content) != tt.content {
				t.Errorf("content %s, want %s", res.Content, tt.content)
			}
			if diff := cmp.Diff(tt.parts, res.Parts); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// FuzzToolResult checks three properties of the result of a server: it causes no panic, its content is
// JSON, and plain texts are read like every other block.
func FuzzToolResult(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"{}"}],"structuredContent":1}`))
	f.Add([]byte(`{"content":[null,{"type":"resource"}]}`))
	f.Add([]byte(` {"content":[{"type":"text","text":"a\\u00e4\\n"} , {"text":" {} ","type":"text"}],"isError":true,"_meta":{"a":1},"resultType":"complete"}`))
	f.Add([]byte(`{"content":[{"type":"text","text":"a","Text":"b"}],"structuredContent":null,"isError":null}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		answer, err := wire.Parse(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"r1","result":%s}`, raw))
		if err != nil {
			return
		}
		res, _, ok := toolResult(&answer)
		if ok && !json.Valid(res.Content) {
			t.Fatalf("%q: content %q", raw, res.Content)
		}
		var blocks []json.RawMessage
		_ = json.Unmarshal(answer.Result.Get("content"), &blocks) // what is no list has no parts
		for i, p := range res.Parts {
			var b wire.Block
			if plain, is := textPart(blocks[i]); is && (json.Unmarshal(blocks[i], &b) != nil || *b.Text != plain.Text || p.Text != plain.Text) {
				t.Errorf("%q: read as %q, and by encoding/json as %+v", blocks[i], plain.Text, b)
			}
		}
	})
}

// answerWith returns a server's response with a result.
func answerWith(result string) *wire.Message {
	m, err := wire.Parse([]byte(`{"jsonrpc":"2.0","id":"r1","result":` + result + `}`))
	if err != nil {
		panic(err)
	}
	return &m
}

func TestWireNames(t *testing.T) {
	for name, want := range map[string]bool{"a": true, "A_b-9": true, "": false, "a b": false, "a.b": false, "é": false,
		strings.Repeat("a", 64): true, strings.Repeat("a", 65): false, "@": false, "[": false, "`": false, "{": false} {
		if got := isWireName(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

// The output of a server is read message by message. An invalid line ends the session unless it is
// harmless.
func TestPipeReads(t *testing.T) {
	const message, note = `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","method":"x"}`
	for name, tc := range map[string]struct{ line, err string }{
		"a message":                        {message, ""},
		"a batch":                          {"[" + message + "," + note + "]", ""},
		"an empty batch":                   {"[]", ""},
		"a broken batch":                   {"[{]", "not JSON-RPC"},
		"a log line in JSON":               {`{"level":"info"}`, ""},
		"an error that belongs to nothing": {`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}`, ""},
		"text":                             {"hello", `the server wrote a line that is not JSON-RPC: "hello"`},
		"an answer that cannot be read":    {`{"id":1,"result":{}}`, "the server wrote a line that is not JSON-RPC"},
	} {
		l := &pipeLink{s: &session{log: slog.New(slog.DiscardHandler), upstream: &upstream{}}}
		if err := l.line([]byte(tc.line)); (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %v, want %q", name, err, tc.err)
		}
	}
}

// silentLink is a link to a server that ends at once.
type silentLink struct{ link }

func (silentLink) bye() {}
func (silentLink) cut() {}
func (silentLink) end() {}

// TestBackoffOfAReplacedSession checks that the back-off is dropped if a session's end is noticed after the
// next session was started, so that the next session need not wait.
func TestBackoffOfAReplacedSession(t *testing.T) {
	all := NewUpstreams(nil, Options{})
	defer all.Close()
	u := newUpstream(all, &v1.MCPServer{})
	sl := &u.shared
	for range 3 {
		u.failed(sl, errors.New("it died"), true)
	}
	if sl.retryAfter.IsZero() {
		t.Fatal("a server that died three times is started again at once")
	}
	s := &session{slot: sl, upstream: u, log: u.log, link: silentLink{}, done: make(chan struct{}), leaving: make(chan struct{})}
	u.opened(sl, s, nil)
	u.mu.Lock()
	if sl.lastErr != nil || !sl.retryAfter.IsZero() {
		t.Errorf("the reason is %v, and the wait lasts until %s", sl.lastErr, sl.retryAfter)
	}
	u.mu.Unlock()
	s.fail(errors.New("it died again"))
	close(s.done)
	u.running.Wait()
}
