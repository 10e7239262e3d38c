package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// metric is the description of a metric in docs/observability.md or /metrics.
type metric struct {
	kind   string
	labels []string
}

var (
	typeLine   = regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`)
	label      = regexp.MustCompile(`[{,]([a-z_]+)="`)
	backquoted = regexp.MustCompile("`([^`]+)`")
)

// exposed reads a page of metrics, without those of the runtime and the process.
func exposed(page string) map[string]metric {
	all := map[string]metric{}
	for _, m := range typeLine.FindAllStringSubmatch(page, -1) {
		name := m[1]
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") || name == "target_info" {
			continue
		}
		labels := map[string]bool{}
		for _, line := range regexp.MustCompile(`(?m)^`+name+`(_bucket)?(\{.*\}) `).FindAllStringSubmatch(page, -1) {
			for _, l := range label.FindAllStringSubmatch(line[2], -1) {
				labels[l[1]] = l[1] != "le"
			}
		}
		maps.DeleteFunc(labels, func(_ string, ours bool) bool { return !ours })
		all[name] = metric{m[2], slices.Sorted(maps.Keys(labels))}
	}
	return all
}

// documented reads the metrics and their labels from the table of docs/observability.md. Names have no suffix.
func documented(t *testing.T) map[string]metric {
	t.Helper()
	text, err := os.ReadFile("../../docs/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| metric | unit | labels | meaning |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	underscores := strings.NewReplacer(".", "_")
	all := map[string]metric{}
	var before []string
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 6 || !strings.Contains(cells[1], "`") {
			continue
		}
		labels := map[string]bool{}
		for _, l := range backquoted.FindAllStringSubmatch(cells[3], -1) {
			labels[underscores.Replace(l[1])] = true
		}
		if strings.Contains(cells[3], "the same") { // the same labels as the row before
			for _, l := range before {
				labels[l] = true
			}
		}
		before = slices.Sorted(maps.Keys(labels))
		all[underscores.Replace(backquoted.FindStringSubmatch(cells[1])[1])+map[string]string{"s": "_seconds", "By": "_bytes"}[strings.TrimSpace(cells[2])]] = metric{labels: before}
	}
	return all
}

// TestMetricsAreDocumented checks that the table in docs/observability.md lists exactly the metrics of a server that
// uses all features.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	upstream := sdk.NewServer(&sdk.Implementation{Name: "notes", Version: "1"}, nil)
	upstream.AddTool(&sdk.Tool{Name: "find", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "found"}}}, nil
	})
	mcpServer := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return upstream }, &sdk.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(mcpServer.Close)
	dir, r := t.TempDir(), newGitRepo(t)
	writeFile(t, filepath.Join(r.work, "tools.yaml"), fmt.Sprintf(mockTool, "one")+fmt.Sprintf(`
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: once}
spec: {limits: [{tools: [one], max_calls: 1, per: session}]}
---
apiVersion: toolctl.dev/v1
kind: MCPServer
metadata: {name: notes}
spec: {url: %q}
`, mcpServer.URL))
	r.push(t)
	writeFile(t, filepath.Join(dir, "key"), strings.Repeat("ab", 32)+"\n")
	if err := os.Chmod(filepath.Join(dir, "key"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serveHTTP(t, "--source", "git+file://"+r.bare, "--store", filepath.Join(dir, "state.db"), "--replica-key-file", filepath.Join(dir, "key"),
		"--ui", "--metrics-addr", "127.0.0.1:0", "--allow-private-network")
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		cs := s.client(t, version, nil)
		for _, tool := range []string{"one", "one", "notes__find", "missing"} {
			_, _ = cs.CallTool(t.Context(), &sdk.CallToolParams{Name: tool})
		}
	}
	res, err := http.Get(strings.TrimSuffix(s.url, "mcp") + "ui/") //nolint:noctx // a test
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()

	page := s.metrics(t)
	found, rows := exposed(page), documented(t)
	for name, m := range found {
		row, ok := rows[strings.TrimSuffix(name, "_total")]
		if !ok {
			t.Errorf("docs/observability.md has no row for %s", name)
			continue
		}
		if (m.kind == "counter") != strings.HasSuffix(name, "_total") {
			t.Errorf("%s is a %s", name, m.kind)
		}
		for _, l := range m.labels {
			if !slices.Contains(row.labels, l) {
				t.Errorf("%s has the label %s, which docs/observability.md does not name", name, l)
			}
		}
	}
	for name := range rows {
		_, plain := found[name]
		if _, counter := found[name+"_total"]; !plain && !counter {
			t.Errorf("docs/observability.md names %s, which is not there:\n%s", name, page)
		}
	}
}
