package main

import (
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestServeTurnIdle checks that a turn rule does not block an ordinary client, which knows no turns, forever.
func TestServeTurnIdle(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "shop.yaml"), `
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: pay}
spec: {description: Pay, input_schema: {type: object}, mock_result: paid}
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: one-a-turn}
spec: {limits: [{max_calls: 1, per: turn}]}
`)
	for _, tt := range []struct {
		idle, second string
	}{
		{"1h", "error: tool \"pay\": refused by policy \"one-a-turn\", rule limits[0]: 1 of 1 call used this turn"},
		{"1ns", "paid"}, // any pause ends the turn
	} {
		s := serveHTTP(t, "-f", dir, "--turn-idle", tt.idle)
		if log := strings.Join(s.past, "\n"); !strings.Contains(log, "MCP has no turns") || !strings.Contains(log, `"policy":"one-a-turn"`) {
			t.Errorf("the log has %s", log)
		}
		for _, version := range []string{"2025-11-25", "2026-07-28"} {
			cs := s.client(t, version, nil)
			session := sdk.Meta{"toolctl.dev/session": version}
			if text, _ := payCall(t, cs, nil, session); text != "paid" {
				t.Errorf("%s, --turn-idle %s, first: %s", version, tt.idle, text)
			}
			if text, _ := payCall(t, cs, nil, session); !strings.HasPrefix(text, tt.second) {
				t.Errorf("%s, --turn-idle %s, second: %s", version, tt.idle, text)
			}
		}
	}
	toolctl(t, exitUsage, "serve", "-f", dir, "--turn-idle", "0s")
}
