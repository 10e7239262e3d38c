package main

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const approvalShop = `
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: pay}
spec:
  description: Pay
  redact: [card]
  input_schema: {type: object, properties: {amount: {type: number}, card: {type: string}}, required: [amount], additionalProperties: false}
  mock_template: '{"paid":{{.amount}}}'
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: look}
spec: {description: Look, input_schema: {type: object}, mock_result: {seen: true}}
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: careful}
spec:
  require_approval: [pay]
  max_total_tool_calls: 4
  limits: [{tools: [pay], max_calls: 9, per: day}]
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: no-look-for-bob}
spec: {blocklist: [look], match: {principals: [bob]}}
`

// bearer adds a token to requests.
type bearer struct {
	token string
	base  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.base.RoundTrip(r)
}

// clientOf connects with a version of the protocol and a token.
func (s *served) clientOf(t testing.TB, version, token string, o *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	cs, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o).Connect(context.Background(),
		&sdk.StreamableClientTransport{Endpoint: s.url, HTTPClient: &http.Client{Transport: bearer{token, transport}}, DisableStandaloneSSE: o == nil},
		&sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cs.Close(); transport.CloseIdleConnections() })
	return cs
}

// payCall calls pay and returns the text of the result, and its _meta as JSON.
func payCall(t testing.TB, cs *sdk.ClientSession, args map[string]any, meta sdk.Meta) (text, said string) {
	t.Helper()
	res, err := cs.CallTool(context.Background(), &sdk.CallToolParams{Name: "pay", Arguments: args, Meta: meta})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(res.Meta)
	if err != nil {
		t.Fatal(err)
	}
	text = res.Content[0].(*sdk.TextContent).Text
	if res.IsError {
		text = "error: " + text
	}
	return text, string(raw)
}

var pendingCallID = regexp.MustCompile(`pending call ([a-z2-7]{10})`)

func TestServeApprovals(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			dir := t.TempDir()
			db, file := filepath.Join(dir, "state.db"), filepath.Join(dir, "tokens")
			writeFile(t, filepath.Join(dir, "shop.yaml"), approvalShop)
			writeFile(t, file, tokenLine("ann", "1")+tokenLine("bob", "2"))
			args := []string{"-f", filepath.Join(dir, "shop.yaml"), "--store", db, "--token-file", file}
			approve := func(verb, id string) {
				t.Helper()
				toolctl(t, exitOK, "approvals", verb, id, "--as", "eve", "--reason", "as agreed", "--store", db)
			}
			five := map[string]any{"amount": 5, "card": "4111"}
			s := serveHTTP(t, args...)
			ann := s.clientOf(t, version, "1", nil)

			text, meta := payCall(t, ann, five, nil)
			id := pendingCallID.FindStringSubmatch(text)
			if id == nil || !strings.HasPrefix(text, `error: the call was not made: tool "pay" needs approval by policy "careful" (pending call `) ||
				!strings.HasSuffix(text, `). Ask a person to approve it with 'toolctl approvals approve `+id[1]+`', then repeat the call with the same arguments`) {
				t.Fatalf("got %s", text)
			}
			for _, want := range []string{`"toolctl.dev/pending":{`, `"id":"` + id[1] + `"`, `"reason":"requires_approval"`, `"toolctl.dev/policy":{"decision":"pending"`, `"used":0`, `"remaining":4`} {
				if !strings.Contains(meta, want) {
					t.Errorf("_meta has no %s: %s", want, meta)
				}
			}
			if strings.Contains(meta, "4111") {
				t.Errorf("_meta shows a secret: %s", meta)
			}
			if again, _ := payCall(t, ann, five, nil); !strings.Contains(again, id[1]) {
				t.Errorf("another id: %s", again)
			}
			if other, _ := payCall(t, s.clientOf(t, version, "2", nil), five, nil); strings.Contains(other, id[1]) {
				t.Errorf("bob gets ann's: %s", other)
			}

			// Pending calls survive the server, and are visible in the next session of the principal.
			s.stop()
			if code := <-s.ended; code != exitOK {
				t.Fatalf("exit code %d", code)
			}
			s.ended <- exitOK
			approve("approve", id[1])
			s = serveHTTP(t, args...)
			ann, bob := s.clientOf(t, version, "1", nil), s.clientOf(t, version, "2", nil)
			if other, _ := payCall(t, bob, five, sdk.Meta{"toolctl.dev/approval": id[1]}); !strings.Contains(other, `approval "`+id[1]+`" is not valid for this call`) {
				t.Errorf("bob uses ann's: %s", other)
			}
			text, meta = payCall(t, ann, five, nil)
			if text != `{"paid":5}` {
				t.Errorf("approved: %s", text)
			}
			for _, want := range []string{`"toolctl.dev/policy":{"decision":"allow"`, `"rule":"require_approval"`, `"remaining":8`, `"resets_at":"20`} {
				if !strings.Contains(meta, want) {
					t.Errorf("_meta has no %s: %s", want, meta)
				}
			}
			text, _ = payCall(t, ann, five, nil)
			if next := pendingCallID.FindStringSubmatch(text); next == nil || next[1] == id[1] {
				t.Errorf("an approval is for one call: %s", text)
			} else {
				approve("deny", next[1])
			}
			text, meta = payCall(t, ann, five, nil)
			if text != `error: tool "pay": refused by policy "careful", rule require_approval: denied by eve: as agreed` || !strings.Contains(meta, `"decision":"deny"`) {
				t.Errorf("denied: %s %s", text, meta)
			}

			// The approval is named in the call.
			text, _ = payCall(t, ann, map[string]any{"amount": 6}, nil)
			id = pendingCallID.FindStringSubmatch(text)
			approve("approve", id[1])
			if text, _ = payCall(t, ann, map[string]any{"amount": 6}, sdk.Meta{"toolctl.dev/approval": id[1]}); text != `{"paid":6}` {
				t.Errorf("by its name: %s", text)
			}

			// Each principal has its own list and its own calls.
			if a, b := toolNames(t, ann), toolNames(t, bob); a != "look pay" || b != "pay" {
				t.Errorf("ann sees %s, bob %s", a, b)
			}
			res, err := bob.CallTool(t.Context(), &sdk.CallToolParams{Name: "look"})
			if err != nil || !res.IsError || res.Content[0].(*sdk.TextContent).Text != `tool "look": refused by policy "no-look-for-bob", rule blocklist: on the blocklist as "look"` {
				t.Errorf("got %v, %v", res, err)
			}
		})
	}
}

// TestServeApprovalsWithoutAStore checks that both sides learn that nobody can approve without a store.
func TestServeApprovalsWithoutAStore(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "shop.yaml"), approvalShop)
	s := serveHTTP(t, "-f", dir)
	text, meta := payCall(t, s.client(t, "2026-07-28", nil), map[string]any{"amount": 5}, nil)
	if text != `error: the call was not made: tool "pay" needs approval by policy "careful", which nobody can give: the client cannot ask for it, and the server was started without a store` {
		t.Errorf("got %s", text)
	}
	if strings.Contains(meta, "expires_at") {
		t.Errorf("got %s", meta)
	}
	if _, log := toolctl(t, exitOK, "serve", "-f", dir); !strings.Contains(log, "only clients that can ask their user can approve calls") {
		t.Errorf("the log has %s", log)
	}
}

// TestServeAsksTheClient checks that a client with forms gets the question at once.
func TestServeAsksTheClient(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "shop.yaml"), approvalShop)
	s := serveHTTP(t, "-f", dir)
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		for _, tt := range []struct{ action, want string }{
			{"accept", `{"paid":5}`},
			{"decline", `error: tool "pay": refused by policy "careful", rule require_approval: denied by the client`},
			{"cancel", `error: the call was not made: tool "pay" needs approval`},
		} {
			t.Run(version+"/"+tt.action, func(t *testing.T) {
				asked := ""
				cs := s.client(t, version, &sdk.ClientOptions{ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
					asked = r.Params.Message
					res := &sdk.ElicitResult{Action: tt.action}
					if tt.action == "accept" {
						res.Content = map[string]any{"approve": true}
					}
					return res, nil
				}})
				text, _ := payCall(t, cs, map[string]any{"amount": 5, "card": "4111"}, nil)
				if !strings.HasPrefix(text, tt.want) {
					t.Errorf("got %s, want %s", text, tt.want)
				}
				if !strings.Contains(asked, `"pay" needs approval by policy "careful"`) || !strings.Contains(asked, `"amount": 5`) || strings.Contains(asked, "4111") {
					t.Errorf("asked %s", asked)
				}
			})
		}
	}
}

// TestServeClientsDoNotApproveThemselves checks that a client with a token can approve its own call with a form only
// if the policies allow it.
func TestServeClientsDoNotApproveThemselves(t *testing.T) {
	t.Parallel()
	policy := func(name, approvers string) string {
		return "\n---\napiVersion: toolctl.dev/v1\nkind: ToolPolicy\nmetadata: {name: " + name + "}\nspec: {require_approval: [pay]" + approvers + "}"
	}
	shop, _, _ := strings.Cut(approvalShop, "---\napiVersion: toolctl.dev/v1\nkind: ToolPolicy")
	shop = strings.TrimSuffix(shop, "\n")
	for name, tt := range map[string]struct {
		policies   string
		ann, bob   bool // whether a form of that person may approve
		consenting bool // the tool requires the consent of the client's user
	}{
		"nothing is said":             {policies: policy("a", "")},
		"self":                        {policies: policy("a", ", approvers: {self: true}"), ann: true, bob: true},
		"ask":                         {policies: policy("a", ", approvers: {ask: client}"), ann: true, bob: true},
		"ask the approver":            {policies: policy("a", ", approvers: {ask: client, principals: [ann]}"), ann: true},
		"approvers":                   {policies: policy("a", ", approvers: {principals: [ann, bob]}")},
		"one of two policies":         {policies: policy("a", ", approvers: {self: true}") + policy("b", "")},
		"the other of two policies":   {policies: policy("a", "") + policy("b", ", approvers: {ask: client}")},
		"both policies":               {policies: policy("a", ", approvers: {self: true}") + policy("b", ", approvers: {ask: client}"), ann: true, bob: true},
		"the tool asks for consent":   {policies: strings.Replace(policy("a", ""), "[pay]", "[none]", 1), ann: true, bob: true, consenting: true},
		"a consent, and nothing else": {policies: policy("a", ""), consenting: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			text := shop
			if tt.consenting {
				text = strings.Replace(shop, "  description: Pay\n", "  description: Pay\n  client: {consent: {required: true}}\n", 1)
			}
			writeFile(t, filepath.Join(dir, "shop.yaml"), text+tt.policies+"\n")
			writeFile(t, filepath.Join(dir, "tokens"), tokenLine("ann", "1")+tokenLine("bob", "2"))
			s := serveHTTP(t, "-f", filepath.Join(dir, "shop.yaml"), "--store", filepath.Join(dir, "state.db"), "--token-file", filepath.Join(dir, "tokens"))
			for _, version := range []string{"2025-11-25", "2026-07-28"} {
				for token, counts := range map[string]bool{"1": tt.ann, "2": tt.bob} {
					asked := ""
					cs := s.clientOf(t, version, token, &sdk.ClientOptions{ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
						asked = r.Params.Message
						return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}}, nil
					}})
					text, _ := payCall(t, cs, map[string]any{"amount": 5}, nil)
					switch {
					case counts && (text != `{"paid":5}` || !strings.HasPrefix(asked, "toolctl asks: ")):
						t.Errorf("%s, %s: asked %q, got %s", version, token, asked, text)
					case !counts && (asked != "" || !strings.Contains(text, "; nobody was asked, because its policy leaves the decision to others (pending call ")):
						t.Errorf("%s, %s: asked %q, got %s", version, token, asked, text)
					}
				}
			}
		})
	}
}
