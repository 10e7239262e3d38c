package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestServeNumbersBeyondADouble checks that a request with a number beyond float64 gets an error that explains the
// problem, anywhere in the request and with any client.
func TestServeNumbersBeyondADouble(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "tools.yaml"), `
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: plain}
spec: {description: Plain, input_schema: {type: object, properties: {a: {type: number}}}, mock_result: {ok: true}}
`)
	s := serveHTTP(t, "-f", dir)
	w := openWire(t, s.url, "2025-11-25")
	post := func(version, args, meta, can string) (int, string) {
		t.Helper()
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"plain","arguments":%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":%s%s}}}`, args, can, meta)
		head := http.Header{"Mcp-Method": {"tools/call"}, "Mcp-Name": {"plain"}}
		if version == "2025-11-25" {
			head = http.Header{sessionHeader: {w.session}}
			body = strings.Replace(body, `"io.modelcontextprotocol/protocolVersion":"2026-07-28",`, "", 1)
		}
		req, err := http.NewRequest(http.MethodPost, s.url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = head
		req.Header.Set("Mcp-Protocol-Version", version)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(text)
	}
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		for _, can := range []string{`{}`, `{"elicitation":{}}`} {
			for _, number := range []string{"1e999", "-1e999", "1E+400", strings.Repeat("9", 400), "9" + strings.Repeat("0", 308) + ".0"} {
				for _, at := range []struct{ args, meta string }{{args: `{"a":` + number + `}`}, {args: `{"b":[{"c":` + number + `}]}`}, {args: `{}`, meta: `,"x":` + number}} {
					status, text := post(version, at.args, at.meta, can)
					if !strings.Contains(text, "double") && !strings.Contains(text, strings.Trim(number, "-")) || !strings.Contains(text, `"id":7`) || strings.Contains(text, "name from") || strings.Contains(text, "missing") {
						t.Errorf("%s %s %.60s %.60s: %d %.300s", version, can, at.args, at.meta, status, text)
					}
				}
			}
			for _, args := range []string{`{"a":1e308}`, `{"a":-1.7976931348623157e308}`, `{"a":1e-400}`, `{"a":5,"b":"1e999","c":"\\\"1e999"}`} {
				if _, text := post(version, args, "", can); !strings.Contains(text, `\"ok\":true`) {
					t.Errorf("%s %s %s: %.300s", version, can, args, text)
				}
			}
		}
	}
}

// TestServeCoercesLargeTables checks that a table with many wrongly typed cells is coerced like a small one, and that
// the rest of the table does not change.
func TestServeCoercesLargeTables(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "tools.yaml"), `
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: sum}
spec:
  description: Sum
  input_schema: {type: object, properties: {rows: {type: array, items: {type: object, properties: {n: {type: integer}, on: {type: boolean}}, required: [n], additionalProperties: false}}}, required: [rows]}
  mock_template: '{"rows":{{len .rows}},"first":{{json (index .rows 0)}},"last":{{json (index .rows 29999)}}}'
`)
	s := serveHTTP(t, "-f", dir)
	rows := make([]any, 30_000)
	for i := range rows {
		rows[i] = map[string]any{"n": i, "on": true}
	}
	rows[0], rows[29_999] = map[string]any{"n": "0", "on": nil}, map[string]any{"n": "29999", "on": "yes"}
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		res, err := s.client(t, version, nil).CallTool(t.Context(), &sdk.CallToolParams{Name: "sum", Arguments: map[string]any{"rows": rows}})
		if err != nil {
			t.Fatal(err)
		}
		got, _ := json.Marshal(res.StructuredContent)
		if want := `{"first":{"n":0},"last":{"n":29999,"on":true},"rows":30000}`; string(got) != want {
			t.Errorf("%s: got %s %s, want %s", version, got, textOf(res), want)
		}
	}
}
