package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestServeFollowsDeclaredFiles checks that serve watches a declared file anywhere, and removes its resource with its
// tool.
func TestServeFollowsDeclaredFiles(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "tool.yaml")
	text := `
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: %NAME%}
spec: {description: d, input_schema: {type: object}, mock_result: {}, resources: [{file: docs/notes.md, uri: "docs:%NAME%"}]}
`
	of := func(name string) string { return strings.ReplaceAll(text, "%NAME%", name) }
	writeFile(t, filepath.Join(dir, "docs", "notes.md"), "one")
	writeFile(t, file, of("a")+"---"+of("b"))
	s := serveHTTP(t, "-f", file, "--watch")
	part := serveHTTP(t, "-f", file, "--tools", "b")
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		want := func(s *served, uri, text string) {
			t.Helper()
			res, err := s.client(t, version, nil).ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
			switch {
			case text == "" && err == nil:
				t.Errorf("%s: got %v, want an error", uri, res.Contents)
			case text != "" && (err != nil || len(res.Contents) != 1 || res.Contents[0].Text != text || res.Contents[0].MIMEType != "text/markdown"):
				t.Errorf("%s: got %v, %v", uri, res, err)
			}
		}
		writeFile(t, filepath.Join(dir, "docs", "new"), version)
		if err := os.Rename(filepath.Join(dir, "docs", "new"), filepath.Join(dir, "docs", "notes.md")); err != nil { // a rename, so that the file is never half written
			t.Fatal(err)
		}
		s.wait(t, `"msg":"reloaded"`)
		want(s, "docs:a", version)
		want(s, "docs:b", version)
		want(part, "docs:a", "")
		want(part, "docs:b", "one")
	}
}
