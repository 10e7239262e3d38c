package gateway_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/mcp/server"
	"toolctl.dev/toolctl/pkg/store/memory"
)

var versions = []string{"2025-11-25", "2026-07-28"}

const desk = `
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: get-order, labels: {team: support}}
spec: {description: Get an order, input_schema: {type: object}, mock_result: {order: 1}}
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: pay}
spec: {description: Pay, input_schema: {type: object}, mock_result: {paid: true}}
---
apiVersion: toolctl.dev/v1
kind: Prompt
metadata: {name: reply-kindly}
spec:
  description: Reply
  input: {type: object, properties: {tone: {type: string, enum: [warm, brief]}}}
  template: Reply kindly.
---
apiVersion: toolctl.dev/v1
kind: Prompt
metadata: {name: dunning}
spec: {description: Remind, template: Please pay.}
`

const support = `
apiVersion: toolctl.dev/v1
kind: Toolset
metadata: {name: support}
spec:
  description: What the support desk uses
  include:
  - labels: {team: support}
  - prompts: ["reply-*"]
  groups: [desk]
`

const open1 = `
apiVersion: toolctl.dev/v1
kind: Toolset
metadata: {name: everyone}
spec: {include: [{tools: [pay]}]}
`

// serving is a gateway over HTTP with two principals: ann, who is in the group desk, and bob.
type serving struct {
	*gateway.Gateway
	source *changing
	url    string
}

func serve(t *testing.T, o gateway.Options, manifests ...string) *serving {
	t.Helper()
	s := &serving{source: new(changing)}
	s.source.set(manifests...)
	tokens := filepath.Join(t.TempDir(), "tokens")
	line := func(who, groups string) string {
		sum := sha256.Sum256([]byte(who))
		return who + ":" + hex.EncodeToString(sum[:]) + groups + "\n"
	}
	if err := os.WriteFile(tokens, []byte(line("ann", ":desk")+line("bob", "")), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Source, o.TokenFile = s.source, tokens
	s.Gateway = open(t, o)
	at := httptest.NewServer(s.Handler())
	t.Cleanup(at.Close)
	t.Cleanup(at.CloseClientConnections)
	s.url = at.URL
	return s
}

func (s *serving) reload(t *testing.T, manifests ...string) {
	t.Helper()
	s.source.set(manifests...)
	if err := s.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
}

type asUser struct {
	name string
	http.RoundTripper
}

func (u asUser) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+u.name)
	return u.RoundTripper.RoundTrip(r)
}

func (s *serving) client(t *testing.T, path, who, version string, o *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o)
	listening := make(chan struct{}, 1)
	client.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			if method == "notifications/subscriptions/acknowledged" {
				listening <- struct{}{}
			}
			return next(ctx, method, req)
		}
	})
	cs, err := client.Connect(t.Context(),
		&sdk.StreamableClientTransport{Endpoint: s.url + path, HTTPClient: &http.Client{Transport: asUser{who, transport}}, MaxRetries: -1},
		&sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cs.Close()
		transport.CloseIdleConnections()
	})
	if o != nil && version == versions[1] {
		<-listening
	}
	return cs
}

func toolNames(t *testing.T, cs *sdk.ClientSession) (names []string) {
	t.Helper()
	for tool, err := range cs.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	return names
}

func promptNames(t *testing.T, cs *sdk.ClientSession) (names []string) {
	t.Helper()
	for p, err := range cs.Prompts(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, p.Name)
	}
	return names
}

// What is not in a toolset can be neither listed nor used there.
func TestToolset(t *testing.T) {
	s := serve(t, gateway.Options{}, desk, support, open1)
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			ann, all := s.client(t, "/mcp/support", "ann", version, nil), s.client(t, "/mcp", "ann", version, nil)
			if got := toolNames(t, ann); !slices.Equal(got, []string{"get-order"}) {
				t.Errorf("tools %q", got)
			}
			if got := toolNames(t, all); !slices.Equal(got, []string{"get-order", "pay"}) {
				t.Errorf("tools at /mcp %q", got)
			}
			if got := promptNames(t, ann); !slices.Equal(got, []string{"reply-kindly"}) {
				t.Errorf("prompts %q", got)
			}
			if got := promptNames(t, all); !slices.Equal(got, []string{"dunning", "reply-kindly"}) {
				t.Errorf("prompts at /mcp %q", got)
			}
			if got := ann.InitializeResult().Instructions; got != "What the support desk uses" {
				t.Errorf("instructions %q", got)
			}
			if res, err := ann.CallTool(t.Context(), &sdk.CallToolParams{Name: "get-order"}); err != nil || res.IsError {
				t.Errorf("call: %+v, %v", res, err)
			}
			if _, err := all.CallTool(t.Context(), &sdk.CallToolParams{Name: "pay"}); err != nil {
				t.Error(err)
			}
			if _, err := ann.CallTool(t.Context(), &sdk.CallToolParams{Name: "pay"}); err == nil || !strings.Contains(err.Error(), `unknown tool "pay"`) {
				t.Errorf("call of another tool: %v", err)
			}
			if _, err := ann.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "dunning"}); err == nil || !strings.Contains(err.Error(), `unknown prompt "dunning"`) {
				t.Errorf("another prompt: %v", err)
			}
			complete := func(cs *sdk.ClientSession) error {
				_, err := cs.Complete(t.Context(), &sdk.CompleteParams{Ref: &sdk.CompleteReference{Type: "ref/prompt", Name: "reply-kindly"}, Argument: sdk.CompleteParamsArgument{Name: "tone", Value: "w"}})
				return err
			}
			if err := complete(ann); err != nil {
				t.Error(err)
			}
			if err := complete(s.client(t, "/mcp/everyone", "bob", version, nil)); err == nil {
				t.Error("a prompt of another toolset was completed")
			}
		})
	}
}

// post sends a body as it is.
func (s *serving) post(t *testing.T, path, who, body string, headers ...string) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if who != "" {
		r.Header.Set("Authorization", "Bearer "+who)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text), res.Header
}

const (
	begin   = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	list    = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`
	listNow = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
)

// A caller who may not use a toolset sees what it would see if there were none, whatever it sends.
func TestForbiddenToolsetIsAsMissing(t *testing.T) {
	s := serve(t, gateway.Options{}, desk, support, open1)
	for _, headers := range [][]string{nil, {"Accept", "text/plain"}, {"Content-Type", "text/plain"}, {"Mcp-Session-Id", "x"}, {"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list"}, {"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen"}, {"Mcp-Protocol-Version", "1999-01-01"}} {
		for _, body := range []string{begin, list, listNow, "", "{"} {
			missing, none, h1 := s.post(t, "/mcp/none", "bob", body, headers...)
			forbidden, hidden, h2 := s.post(t, "/mcp/support", "bob", body, headers...)
			h1.Del("Date")
			h2.Del("Date")
			if missing != http.StatusNotFound || forbidden != missing || none != hidden || fmt.Sprint(h1) != fmt.Sprint(h2) {
				t.Errorf("%q %q: status %d %q %v, for a toolset that is not there %d %q %v", headers, body, forbidden, hidden, h2, missing, none, h1)
			}
		}
	}
	for _, path := range []string{"/mcp/none", "/mcp/support"} { // whoever has no token learns nothing either
		if status, _, _ := s.post(t, path, "", begin); status != http.StatusUnauthorized {
			t.Errorf("%s without a token: status %d", path, status)
		}
	}
	if status, body, _ := s.post(t, "/mcp/support", "ann", begin); status != http.StatusOK {
		t.Errorf("ann: status %d %s", status, body)
	}
}

// A session exists only at the address at which it began.
func TestSessionsOfToolsetsAreApart(t *testing.T) {
	s := serve(t, gateway.Options{}, desk, support, open1)
	paths := []string{"/mcp", "/mcp/support", "/mcp/everyone"}
	for _, path := range paths {
		status, _, h := s.post(t, path, "ann", begin)
		if status != http.StatusOK {
			t.Fatal(path, status)
		}
		id := h.Get("Mcp-Session-Id")
		s.post(t, path, "ann", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id", id)
		for _, at := range paths {
			want := http.StatusNotFound
			if at == path {
				want = http.StatusOK
			}
			if status, body, _ := s.post(t, at, "ann", list, "Mcp-Session-Id", id); status != want {
				t.Errorf("a session of %s at %s: status %d %s", path, at, status, body)
			}
		}
	}
}

// Only clients of a toolset whose list changed are notified.
func TestListChangedOfToolsets(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			s := serve(t, gateway.Options{}, desk, support, open1)
			changed := make(chan string, 10)
			for _, path := range []string{"/mcp", "/mcp/support", "/mcp/everyone"} {
				s.client(t, path, "ann", version, &sdk.ClientOptions{ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { changed <- path }})
			}
			s.reload(t, desk, strings.Replace(tool("late", "1"), "{name: late}", "{name: late, labels: {team: support}}", 1), support, open1)
			got := []string{<-changed, <-changed}
			slices.Sort(got)
			if !slices.Equal(got, []string{"/mcp", "/mcp/support"}) {
				t.Errorf("notified %q", got)
			}
			s.reload(t, desk, support, open1) // the other toolset would have been notified before
			got = []string{<-changed, <-changed}
			slices.Sort(got)
			if !slices.Equal(got, []string{"/mcp", "/mcp/support"}) {
				t.Errorf("notified %q", got)
			}
		})
	}
}

// A toolset that is removed ends its sessions, and one that a caller may no longer use its streams.
func TestReloadOfToolsets(t *testing.T) {
	s := serve(t, gateway.Options{}, desk, support, open1)
	_, _, h := s.post(t, "/mcp/support", "ann", begin)
	id := h.Get("Mcp-Session-Id")
	stream := func() chan error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/mcp/support", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer ann")
		r.Header.Set("Accept", "text/event-stream")
		r.Header.Set("Mcp-Session-Id", id)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != http.StatusOK {
			t.Fatal(res.Status)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := io.Copy(io.Discard, res.Body)
			ended <- errors.Join(err, res.Body.Close())
		}()
		return ended
	}
	ended := stream()
	s.reload(t, desk, strings.Replace(support, "groups: [desk]", "principals: [bob]", 1), open1)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if status, _, _ := s.post(t, "/mcp/support", "ann", list, "Mcp-Session-Id", id); status != http.StatusNotFound {
		t.Errorf("ann: status %d", status)
	}
	if status, _, _ := s.post(t, "/mcp/support", "bob", begin); status != http.StatusOK {
		t.Errorf("bob: status %d", status)
	}
	s.reload(t, desk, support, open1)
	if status, body, _ := s.post(t, "/mcp/support", "ann", list, "Mcp-Session-Id", id); status != http.StatusOK {
		t.Errorf("the session goes on: status %d %s", status, body)
	}
	s.reload(t, desk, open1)
	s.reload(t, desk, support, open1)
	if status, _, _ := s.post(t, "/mcp/support", "ann", list, "Mcp-Session-Id", id); status != http.StatusNotFound {
		t.Errorf("after the toolset was away: status %d", status)
	}
}

// A replica that gets a request for a session of another forwards it to the toolset of the session.
func TestToolsetsOfReplicas(t *testing.T) {
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, []byte(strings.Repeat("0123456789abcdef", 4)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	st := memory.New(memory.Options{})
	t.Cleanup(func() { st.Close() })
	source := new(changing)
	source.set(desk, strings.Replace(support, "groups: [desk]", "", 1), open1)
	start := func() *serving {
		at := make(chan net.Addr, 1)
		o := gateway.Options{Source: source, Store: st, Replicas: &gateway.Replicas{KeyFile: keys}, Server: server.Options{DrainTimeout: -1}}
		o.HTTP.Listening = func(a net.Addr) { at <- a }
		g := open(t, o)
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- g.Serve(ctx, ln) }()
		t.Cleanup(func() {
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
		return &serving{Gateway: g, url: "http://" + (<-at).String()}
	}
	first, second := start(), start()
	_, _, h := first.post(t, "/mcp/support", "", begin)
	id := h.Get("Mcp-Session-Id")
	for path, want := range map[string]int{"/mcp/support": 200, "/mcp/everyone": 404, "/mcp": 404, "/mcp/none": 404} {
		status, body, _ := second.post(t, path, "", list, "Mcp-Session-Id", id)
		if status != want || want == 200 && (!strings.Contains(body, "get-order") || strings.Contains(body, `"pay"`)) {
			t.Errorf("%s: status %d %s", path, status, body)
		}
	}
}

func TestAddressesOfToolsets(t *testing.T) {
	in := func(namespace, name string) string {
		return "apiVersion: toolctl.dev/v1\nkind: Toolset\nmetadata: {name: " + name + ", namespace: " + namespace + "}\nspec: {description: " + namespace + "}\n"
	}
	for _, tc := range []struct {
		namespace string
		manifests []string
		want      map[string]string // the namespace by address
	}{
		{"", []string{in("pay", "ops")}, map[string]string{"ops": "pay"}},
		{"", []string{in("pay", "ops"), in("default", "ops")}, map[string]string{"ops": "default", "pay.ops": "pay"}},
		{"", []string{in("pay", "ops"), in("crm", "ops")}, map[string]string{"crm.ops": "crm", "pay.ops": "pay"}},
		{"pay", []string{in("pay", "ops"), in("default", "ops")}, map[string]string{"ops": "pay"}},
		{"", []string{in("pay", "ops"), in("crm", "ops"), in("default", "pay.ops")}, map[string]string{"crm.ops": "crm", "pay.ops": "default"}},
	} {
		source := new(changing)
		source.set(tc.manifests...)
		g := open(t, gateway.Options{Source: source, Subset: gateway.Subset{Namespace: tc.namespace}})
		got := map[string]string{}
		for at, s := range g.Toolsets() {
			got[at] = s.Namespace()
		}
		if !maps.Equal(got, tc.want) {
			t.Errorf("%q in %q: got %v, want %v", tc.manifests, tc.namespace, got, tc.want)
		}
	}
}

// --toolset serves one toolset alone: at /mcp too, and in the console.
func TestOneToolset(t *testing.T) {
	s := serve(t, gateway.Options{Subset: gateway.Subset{Toolset: "support"}}, desk, support, open1)
	for path, want := range map[string]int{"/mcp": 200, "/mcp/support": 200, "/mcp/everyone": 404} {
		if status, body, _ := s.post(t, path, "ann", begin); status != want {
			t.Errorf("%s: status %d %s", path, status, body)
		}
	}
	if status, _, _ := s.post(t, "/mcp", "bob", begin); status != http.StatusNotFound {
		t.Errorf("bob: status %d", status)
	}
	if got := toolNames(t, s.client(t, "/mcp", "ann", versions[1], nil)); !slices.Equal(got, []string{"get-order"}) {
		t.Errorf("tools %q", got)
	}
	view := s.View("ann")
	if got := view.Tools(); len(got) != 1 || got[0].FullName != "default/get-order" {
		t.Errorf("the view has %v", got)
	}
	if _, err := view.Tool("default/pay"); err == nil {
		t.Error("the view has a tool of elsewhere")
	}
	if got := view.Prompts(); len(got) != 1 || got[0].Name != "reply-kindly" {
		t.Errorf("the view has %v", got)
	}
	_, err := gateway.Open(t.Context(), gateway.Options{Source: s.source, Subset: gateway.Subset{Toolset: "suport"}})
	var missing *v1.NotFoundError
	if !errors.As(err, &missing) || !slices.Equal(missing.Candidates, []string{"support"}) {
		t.Errorf("got %v", err)
	}
}
