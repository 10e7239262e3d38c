package gateway

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
)

// TestOneWarning: all problems with servers are logged in one line, and failures come first.
func TestOneWarning(t *testing.T) {
	state := func(name string, ready bool) mcp.ServerState {
		return mcp.ServerState{Key: v1.Key{Kind: v1.KindMCPServer, Namespace: "default", Name: name}, Ready: ready, Reason: "no answer"}
	}
	odd := state("odd", true)
	odd.Warnings = []string{"a tool is left out"}
	many := []mcp.ServerState{odd}
	for i := range 10 {
		many = append(many, state(fmt.Sprintf("down%d", i), false))
	}
	for name, tc := range map[string]struct {
		states []mcp.ServerState
		want   []string
		lines  int
	}{
		"fine": {[]mcp.ServerState{state("a", true)}, nil, 0},
		"one":  {[]mcp.ServerState{state("a", false)}, []string{`msg="mcp server is not ready" server=a namespace=default reason="no answer"`}, 1},
		"two":  {[]mcp.ServerState{odd, state("a", false)}, []string{`msg="mcp server is not ready" server=a`, `others="odd: a tool is left out"`}, 1},
		"many": {many, []string{"server=down0", "down5 is not ready: no answer; and 5 more"}, 1},
	} {
		var log bytes.Buffer
		var found warnings
		found.states(tc.states)
		found.log(slog.New(slog.NewTextHandler(&log, nil)))
		if got := log.String(); strings.Count(got, "\n") != tc.lines {
			t.Errorf("%s: %s", name, got)
		}
		for _, want := range tc.want {
			if !strings.Contains(log.String(), want) {
				t.Errorf("%s: %q is not in %s", name, want, log.String())
			}
		}
	}
}
