package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// These are parts of responses that a gateway does not use and must not lose.
const (
	richTool = `{"name":"rich","title":"Rich","description":"d","inputSchema":{"type":"object","properties":{"z":{"const":9007199254740993},"a":{}}},` +
		`"annotations":{"title":"Other","readOnlyHint":false,"x-vendor":1},"icons":[{"src":"data:image/png;base64,AA==","sizes":["48x48"],"theme":"dark"}],"_meta":{"z.example/k":{"b":12345678901234567890,"a":1.0}}}`
	bareTool     = `{"name":"bare","description":"d","inputSchema":{"type":"object"}}`
	richPrompt   = `{"name":"p","title":"P","description":"d","arguments":[{"name":"a","title":"A","required":true}],"icons":[{"src":"https://x.example/p.png"}],"_meta":{"k":1}}`
	richResource = `{"uri":"file:///r","name":"r","title":"R","description":"d","mimeType":"text/plain","size":3,"annotations":{"audience":["user"],"priority":0.5,"lastModified":"2026-01-01T00:00:00Z"},"icons":[{"src":"https://x.example/r.png"}],"_meta":{"k":1}}`
	richTemplate = `{"uriTemplate":"file:///t/{id}","name":"t","title":"T","icons":[{"src":"https://x.example/t.png"}],"_meta":{"k":1}}`
	richContent  = `[{"type":"text","text":"{\"z\":1}","annotations":{"priority":1},"_meta":{"k":1}},{"type":"image","data":"AA==","mimeType":"image/png","_meta":{"k":2}},` +
		`{"type":"audio","data":"AA==","mimeType":"audio/wav","annotations":{"audience":["assistant"]}},` +
		`{"type":"resource","resource":{"uri":"file:///r","mimeType":"text/plain","text":"","_meta":{"k":3}},"_meta":{"k":4}},` +
		`{"type":"resource_link","uri":"file:///l","name":"l","title":"L","description":"d","mimeType":"text/plain","size":9007199254740993,"icons":[{"src":"https://x.example/l.png"}],"annotations":{"priority":0},"_meta":{"k":5}}]`
	// The text content repeats the structured content, as the specification advises.
	richStructured = `{"z":1}`
	deepStructured = `{"z":[12345678901234567890,1.10],"a":{"y":1e400,"b":"<&>"}}`
)

// passUpstream responds with the constants above.
func passUpstream(t *testing.T) string {
	results := map[string]string{
		"initialize":     `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{},"resources":{}},"serverInfo":{"name":"up","version":"1"},"instructions":"Ask me."}`,
		"tools/list":     `{"tools":[` + richTool + `,` + bareTool + `]}`,
		"prompts/list":   `{"prompts":[` + richPrompt + `]}`,
		"prompts/get":    `{"description":"d","messages":[{"role":"user","content":{"type":"text","text":"t","annotations":{"priority":1},"_meta":{"k":1}}}],"_meta":{"k":6}}`,
		"resources/list": `{"resources":[` + richResource + `]}`,
		"resources/read": `{"contents":[{"uri":"file:///r","mimeType":"text/plain","text":"t","_meta":{"k":7}}]}`,

		"resources/templates/list": `{"resourceTemplates":[` + richTemplate + `]}`,
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Arguments struct{ How string } }
		}
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		_ = json.NewDecoder(r.Body).Decode(&m)
		if m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		result := results[m.Method]
		if m.Method == "tools/call" {
			result = map[string]string{
				"rich":   `{"content":` + richContent + `,"structuredContent":` + richStructured + `,"_meta":{"k":{"n":12345678901234567890}}}`,
				"failed": `{"content":` + richContent + `,"structuredContent":` + richStructured + `,"isError":true,"_meta":{"k":1}}`,
				"deep":   `{"content":[{"type":"image","data":"AA==","mimeType":"image/png"}],"structuredContent":` + deepStructured + `}`,
			}[m.Params.Arguments.How]
		}
		w.Header().Set("Content-Type", "application/json")
		if result == "" {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, m.ID)
			return
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// rawSession sends requests and returns the raw results.
type rawSession struct {
	t       *testing.T
	url     string
	modern  bool
	session string
	token   string // may be empty
}

func (s *rawSession) post(method, name, params string) (*http.Response, string) {
	s.t.Helper()
	meta := ""
	if s.modern {
		meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}`
		if params != "" {
			meta += ","
		}
	}
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+meta+params+`}}`))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Close = true
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if s.modern {
		req.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		req.Header.Set("Mcp-Method", method)
		if name != "" {
			req.Header.Set("Mcp-Name", name)
		}
	}
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	if s.session != "" {
		req.Header.Set("Mcp-Session-Id", s.session)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res, string(body)
}

// result returns the fields of the result of a request.
func (s *rawSession) result(method, name, params string) map[string]json.RawMessage {
	s.t.Helper()
	res, body := s.post(method, name, params)
	text := body
	for line := range strings.Lines(body) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			text = data
		}
	}
	var m struct{ Result map[string]json.RawMessage }
	if err := json.Unmarshal([]byte(text), &m); err != nil || m.Result == nil {
		s.t.Fatalf("%s: %d %s", method, res.StatusCode, body)
	}
	return m.Result
}

func TestServePassesOnWhatUpstreamsSay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "server.yaml")
	writeFile(t, file, `
apiVersion: toolctl.dev/v1
kind: MCPServer
metadata: {name: up}
spec: {url: "`+passUpstream(t)+`", tool_names: bare}
`)
	server := serveHTTP(t, "-f", file)
	// The escapes of encoding/json in strings do not change their meaning.
	unescape := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&")
	for protocol, modern := range map[string]bool{"sessions": false, "modern": true} {
		t.Run(protocol, func(t *testing.T) {
			s := &rawSession{t: t, url: server.url, modern: modern}
			if !modern {
				res, body := s.post("initialize", "", `"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}`)
				if s.session = res.Header.Get("Mcp-Session-Id"); s.session == "" || !strings.Contains(body, `"instructions":"Ask me."`) {
					t.Fatalf("%d %s", res.StatusCode, body)
				}
			} else if got := string(s.result("server/discover", "", "")["instructions"]); got != `"Ask me."` {
				t.Errorf("instructions: %s", got)
			}
			want := func(what string, got json.RawMessage, want string) {
				t.Helper()
				if text := unescape.Replace(string(got)); text != want {
					t.Errorf("%s:\n got %s\nwant %s", what, text, want)
				}
			}
			wantSame := func(what string, got json.RawMessage, fields ...string) { // ignores the order of fields
				t.Helper()
				var g, w []map[string]json.RawMessage
				if json.Unmarshal(got, &g) != nil || json.Unmarshal([]byte("["+strings.Join(fields, ",")+"]"), &w) != nil || len(g) != len(w) {
					t.Errorf("%s: got %s", what, got)
					return
				}
				for i := range w {
					for k, v := range w[i] {
						want(fmt.Sprintf("%s %d %s", what, i, k), g[i][k], string(v))
						delete(g[i], k)
					}
					for k, v := range g[i] {
						t.Errorf("%s %d has %s %s, which nobody said", what, i, k, v)
					}
				}
			}
			wantSame("tools", s.result("tools/list", "", "")["tools"], bareTool, richTool)
			wantSame("prompts", s.result("prompts/list", "", "")["prompts"], richPrompt)
			wantSame("resources", s.result("resources/list", "", "")["resources"], richResource)
			wantSame("templates", s.result("resources/templates/list", "", "")["resourceTemplates"], richTemplate)

			call := func(how string) map[string]json.RawMessage {
				return s.result("tools/call", "rich", `"name":"rich","arguments":{"how":"`+how+`"}`)
			}
			for _, how := range []string{"rich", "failed"} {
				r := call(how)
				wantSame(how+" content", r["content"], splitArray(t, richContent)...)
				want(how+" structuredContent", r["structuredContent"], richStructured)
				if failed := string(r["isError"]) == "true"; failed != (how == "failed") {
					t.Errorf("%s: isError %s", how, r["isError"])
				}
				wantMeta := map[string]string{"rich": `{"n":12345678901234567890}`, "failed": "1"}[how]
				var meta map[string]json.RawMessage
				if err := json.Unmarshal(r["_meta"], &meta); err != nil || string(meta["k"]) != wantMeta {
					t.Errorf("%s _meta: %s", how, r["_meta"])
				}
			}
			deep := call("deep")
			want("structuredContent", deep["structuredContent"], deepStructured)
			want("content", deep["content"], `[{"type":"image","data":"AA==","mimeType":"image/png"}]`)

			prompt := s.result("prompts/get", "p", `"name":"p","arguments":{"a":"1"}`)
			want("messages", prompt["messages"], `[{"role":"user","content":{"type":"text","text":"t","annotations":{"priority":1},"_meta":{"k":1}}}]`)
			if !strings.Contains(string(prompt["_meta"]), `"k":6`) {
				t.Errorf("_meta of a prompt: %s", prompt["_meta"])
			}
			want("contents", s.result("resources/read", "file:///r", `"uri":"file:///r"`)["contents"], `[{"uri":"file:///r","mimeType":"text/plain","text":"t","_meta":{"k":7}}]`)
		})
	}
}

func splitArray(t *testing.T, text string) []string {
	t.Helper()
	var all []json.RawMessage
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	fields := make([]string, len(all))
	for i, raw := range all {
		fields[i] = string(raw)
	}
	return fields
}
