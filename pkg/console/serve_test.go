package console_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/console"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/mcp/server"
	"toolctl.dev/toolctl/pkg/store"
)

// site is a console with its server.
type site struct {
	t       *testing.T
	url     string // with a slash at the end
	client  *http.Client
	gateway *gateway.Gateway
	console *console.Console
}

// options are the settings of a test.
type options struct {
	manifests  string
	principals []string // principals, each of which is its own token, optionally with ":" and groups; nil for no tokens
	store      store.Store
	console    console.Options
	source     gateway.Source
	http       server.HTTPOptions
	limits     admission.Limits
	objects    []v1.Object
	tls        bool
}

// serve serves a console until the test ends.
func serve(t *testing.T, o options) *site {
	t.Helper()
	g := gateway.Options{Source: o.source, Store: o.store, HTTP: o.http, Limits: o.limits, Objects: o.objects}
	if o.manifests != "" {
		g.Source = gateway.FS(fstest.MapFS{"all.yaml": {Data: []byte(o.manifests)}}, manifest.Options{})
	}
	if o.principals != nil {
		var b strings.Builder
		for _, p := range o.principals {
			name, groups, grouped := strings.Cut(p, ":")
			fmt.Fprintf(&b, "%s:%x", name, sha256.Sum256([]byte(name)))
			if grouped {
				b.WriteString(":" + groups)
			}
			b.WriteByte('\n')
		}
		g.TokenFile = filepath.Join(t.TempDir(), "tokens")
		if err := os.WriteFile(g.TokenFile, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := console.New(o.console)
	g.OnCall, g.OnPending = c.Called, c.Waits
	open, err := gateway.Open(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	c.Attach(open)
	at := httptest.NewUnstartedServer(open.Handler())
	if o.tls {
		at.StartTLS()
	} else {
		at.Start()
	}
	c.Listening(at.URL + "/ui/")
	t.Cleanup(func() {
		at.CloseClientConnections()
		at.Close()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := open.Close(); err != nil {
			t.Error(err)
		}
	})
	return &site{t, at.URL + "/ui/", at.Client(), open, c}
}

// ask sends a request as the principal of a token and returns the status and the body.
func (s *site) ask(method, path, as, body string) (int, string) {
	s.t.Helper()
	res := s.open(method, path, as, body)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, string(raw)
}

func (s *site) open(method, path, as, body string) *http.Response {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if as != "" {
		req.Header.Set("Authorization", "Bearer "+as)
	}
	if strings.Contains(body, "=") && !strings.HasPrefix(body, "{") {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	res, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	return res
}

// event returns the data of the first event with a name on a page of a principal.
func (s *site) event(as, name string) string {
	s.t.Helper()
	res := s.open(http.MethodGet, "events?calls=1", as, "")
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		if lines.Text() == "event: "+name && lines.Scan() {
			return strings.TrimPrefix(lines.Text(), "data: ")
		}
	}
	s.t.Fatalf("no event %s: %v", name, lines.Err())
	return ""
}

const heldPay = `
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: pay}
spec: {description: Pays., input_schema: {type: object, properties: {to: {type: string}}}, mock_result: {ok: true}}
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: look}
spec: {description: Looks., input_schema: {type: object}, mock_result: {}}
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: held}
spec: {require_approval: [pay], approvers: {principals: [ann]}}
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: hidden}
spec: {blocklist: [pay], match: {principals: [eve, ann]}}
`

// TestWaitingCallsAreNotForAll checks that only its caller and those who may decide on it see a pending call, on all
// pages, in the API and in events.
func TestWaitingCallsAreNotForAll(t *testing.T) {
	s := serve(t, options{manifests: heldPay, principals: []string{"ann", "bob", "eve", "tom"}})
	_, body := s.ask("POST", "api/tools/default/pay/call", "bob", `{"args":{"to":"secret-account"}}`)
	var res struct{ Pending struct{ ID string } }
	if err := json.Unmarshal([]byte(body), &res); err != nil || res.Pending.ID == "" {
		t.Fatal(body)
	}
	id := res.Pending.ID
	for _, tt := range []struct {
		who           string
		sees, decides bool
	}{
		{"ann", true, true},   // may decide, although the tool is hidden from ann
		{"bob", true, false},  // the caller
		{"tom", false, false}, // may use the tool
		{"eve", false, false}, // has no relation to the call
	} {
		want, waits := http.StatusNotFound, `{"decide":0,"see":0}`
		if tt.sees {
			want, waits = http.StatusOK, `{"decide":0,"see":1}`
		}
		if tt.decides {
			waits = `{"decide":1,"see":1}`
		}
		for _, path := range []string{"approvals/" + id, "api/approvals/" + id} {
			code, body := s.ask("GET", path, tt.who, "")
			if code != want || strings.Contains(body, "secret-account") != tt.sees {
				t.Errorf("%s of %s: %d, want %d: %s", path, tt.who, code, want, body)
			}
		}
		for _, path := range []string{"approvals", "api/approvals", "api/approvals?state=pending", "activity", "api/calls"} {
			if code, body := s.ask("GET", path, tt.who, ""); code != http.StatusOK || !tt.sees && (strings.Contains(body, "secret-account") || strings.Contains(body, id)) {
				t.Errorf("%s of %s: %d %s", path, tt.who, code, body)
			} else if strings.Contains(path, "approvals") && strings.Contains(body, id) != tt.sees {
				t.Errorf("%s of %s: %s", path, tt.who, body)
			}
		}
		if _, body := s.ask("GET", "", tt.who, ""); strings.Contains(body, "<title>(1)") != tt.decides {
			t.Errorf("the title for %s: %.200s", tt.who, body)
		}
		if got := s.event(tt.who, "waiting"); got != waits {
			t.Errorf("%s is told that %s calls wait, want %s", tt.who, got, waits)
		}
	}
	// A person who may not decide is refused and learns nothing about the call.
	for path, body := range map[string]string{"approvals/" + id: "decision=approve", "api/approvals/" + id: `{"approve":true}`} {
		for _, who := range []string{"eve", "tom", "bob"} {
			code, text := s.ask("POST", path, who, body)
			if code != http.StatusForbidden || who == "eve" && strings.Contains(text, "secret-account") {
				t.Errorf("%s by %s: %d %s", path, who, code, text)
			}
		}
	}
	// The same holds for a decided call.
	if code, text := s.ask("POST", "api/approvals/"+id, "ann", `{"approve":false}`); code != http.StatusOK {
		t.Fatal(code, text)
	}
	if code, _ := s.ask("GET", "api/approvals/"+id, "eve", ""); code != http.StatusNotFound {
		t.Errorf("eve sees what was decided: %d", code)
	}
	if code, _ := s.ask("POST", "api/approvals/"+id, "eve", `{"approve":true}`); code != http.StatusForbidden {
		t.Errorf("eve is told that it was decided: %d", code)
	}
}
