package gateway_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/mcp/server"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/memory"
)

// shop returns 60 tools, of which one refunds an order, with a text for the search.
func shop(ask string) string {
	var all []string
	for i := range 60 {
		all = append(all, tool(fmt.Sprintf("filler-%02d", i), "1"))
	}
	return strings.Join(append(all, `apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: refund-order, labels: {team: pay}}
spec:
  description: Refund an order
  keywords: ["`+ask+`"]
  input_schema: {type: object, properties: {order: {type: integer}}, required: [order]}
  mock_template: '{"refunded":{{.order}}}'
`), "---\n")
}

const shopPolicies = `
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: not-bob}
spec: {blocklist: [refund-order], match: {principals: [bob]}}
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: twice}
spec: {limits: [{tools: [refund-order], max_calls: 2, per: session}]}
`

func find(t *testing.T, cs *sdk.ClientSession, args map[string]any) (names []string) {
	t.Helper()
	res, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "find_tools", Arguments: args})
	if err != nil || res.IsError {
		t.Fatalf("%v: %+v", err, res)
	}
	var got struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal([]byte(res.Content[0].(*sdk.TextContent).Text), &got); err != nil {
		t.Fatal(err)
	}
	for _, tool := range got.Tools {
		names = append(names, tool.Name)
	}
	return names
}

// A policy decides on a call by call_tool as on a direct one, and hides from the search what it hides from the list.
func TestPoliciesOfCallTool(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			st := memory.New(memory.Options{})
			t.Cleanup(func() { st.Close() })
			s := serve(t, gateway.Options{Store: st, Server: server.Options{Discovery: v1.DiscoveryAuto}}, shop("money back"), shopPolicies)
			ann, bob := s.client(t, "/mcp", "ann", version, nil), s.client(t, "/mcp", "bob", version, nil)
			for _, cs := range []*sdk.ClientSession{ann, bob} {
				if got := toolNames(t, cs); !slices.Equal(got, []string{"call_tool", "find_tools"}) {
					t.Errorf("listed %q", got)
				}
			}
			query := map[string]any{"query": "give the money back"}
			if got := find(t, ann, query); !slices.Equal(got, []string{"refund-order"}) {
				t.Errorf("ann found %q", got)
			}
			if got := find(t, ann, map[string]any{"query": "", "labels": map[string]any{"team": "pay"}}); !slices.Equal(got, []string{"refund-order"}) {
				t.Errorf("by label: %q", got)
			}
			if got := find(t, bob, query); len(got) > 0 {
				t.Errorf("bob found %q", got)
			}
			call := func(cs *sdk.ClientSession, wrapped bool) string {
				t.Helper()
				p := &sdk.CallToolParams{Name: "refund-order", Arguments: map[string]any{"order": "7"}}
				if wrapped {
					p = &sdk.CallToolParams{Name: "call_tool", Arguments: map[string]any{"name": p.Name, "arguments": p.Arguments}}
				}
				res, err := cs.CallTool(t.Context(), p)
				if err != nil {
					t.Fatal(err)
				}
				return res.Content[0].(*sdk.TextContent).Text
			}
			for _, wrapped := range []bool{true, false} {
				if got := call(ann, wrapped); got != `{"refunded":7}` {
					t.Errorf("ann, by call_tool %v: %s", wrapped, got)
				}
				if got := call(bob, wrapped); !strings.Contains(got, `refused by policy "not-bob"`) {
					t.Errorf("bob, by call_tool %v: %s", wrapped, got)
				}
			}
			if got := call(ann, true); !strings.Contains(got, `refused by policy "twice"`) {
				t.Errorf("the third call: %s", got)
			}
			lines, err := store.ListAudit(t.Context(), st, store.AuditFilter{})
			if err != nil {
				t.Fatal(err)
			}
			audited := map[string]int{}
			for _, l := range lines {
				audited[l.Tool+" "+l.Principal]++
			}
			if audited["find_tools ann"] != 2 || audited["find_tools bob"] != 1 || audited["refund-order ann"] == 0 || audited["call_tool ann"] > 0 {
				t.Errorf("audited %v", audited)
			}
		})
	}
}

func TestSearchFollowsReloads(t *testing.T) {
	s := serve(t, gateway.Options{Server: server.Options{Discovery: v1.DiscoverySearch}}, shop("money back"))
	cs := s.client(t, "/mcp", "ann", versions[1], nil)
	for _, ask := range []string{"money back", "chargeback"} {
		s.source.set(shop(ask))
		if err := s.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, query := range []string{"money back", "chargeback"} {
			if got := find(t, cs, map[string]any{"query": query}); (len(got) == 1) != (query == ask) {
				t.Errorf("with %q, %q found %q", ask, query, got)
			}
		}
	}
}
