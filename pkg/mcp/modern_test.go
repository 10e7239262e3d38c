package mcp_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
)

// MCP 2026-07-28 has no resumable streams: only calls that may be repeated are sent again, and all others
// fail. A result of an unknown type is an error.
func TestModernStreamsAndTypes(t *testing.T) {
	for name, tc := range map[string]struct {
		answers []string // of the calls: a stream, or the type of a result
		twice   bool     // the tool may be called twice
		err     string
	}{
		"a stream that ends":               {[]string{"id: 1\ndata:\n\n"}, false, "ended without a result"},
		"a stream that ends, called again": {[]string{"id: 1\ndata:\n\n", "complete"}, true, ""},
		"an unknown type":                  {[]string{"mystery"}, false, `unknown type (resultType): "mystery"`},
		"input that cannot be read":        {[]string{`input_required","inputRequests":[1],"more":"`}, false, "asks for input that cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked, gets atomic.Int32
			h := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var m struct {
					ID     json.RawMessage
					Method string
				}
				if r.Method == http.MethodGet {
					gets.Add(1)
				}
				if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil {
					w.WriteHeader(http.StatusMethodNotAllowed)
					return
				}
				result := `{"resultType":"complete","tools":[{"name":"t","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"private"}`
				switch m.Method {
				case "server/discover":
					result = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}`
				case "tools/call":
					next := tc.answers[asked.Add(1)-1]
					if strings.HasPrefix(next, "id:") {
						w.Header().Set("Content-Type", "text/event-stream")
						io.WriteString(w, next)
						return
					}
					result = `{"resultType":"` + next + `","content":[{"type":"text","text":"1"}]}`
				}
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
			}))
			u := open(t, mcp.Options{}, web("s", h.URL))
			res, err := u.Call(t.Context(), key("s"), "t", nil, tc.twice)
			if tc.err == "" && (err != nil || string(res.Content) != "1") || tc.err != "" && (err == nil || !strings.Contains(v1.Detailed(err), tc.err)) {
				t.Errorf("got %s, %v", res.Content, err)
			}
			if int(asked.Load()) != len(tc.answers) || gets.Load() > 0 {
				t.Errorf("%d calls, want %d; %d streams taken up again", asked.Load(), len(tc.answers), gets.Load())
			}
		})
	}
}
