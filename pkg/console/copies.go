package console

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/redact"
	"toolctl.dev/toolctl/internal/wirename"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/scenario"
)

// copyText is a call in a format for pasting elsewhere.
type copyText struct{ Name, Text string }

// copies returns a call and its result in several formats. Formats for files are masked as in
// 'toolctl record'.
func copies(tool *v1.Tool, fullName string, given json.RawMessage, res *v1.Result, mcp string, token bool) []copyText {
	_, name, _ := strings.Cut(fullName, "/")
	out := []copyText{
		{"toolctl call", "toolctl call " + shellWord(fullName) + " -a " + shellWord(string(given))},
		{"curl", curl(wirename.Clean(name), given, mcp, token)},
	}
	rules := slices.Concat(scenario.SecretKeys(), tool.RedactRules())
	args := redact.JSON(given, rules)
	expect := map[string]any{"status": v1.StatusComplete}
	if res != nil {
		expect["status"] = res.Status
		if len(res.Content) > 0 && res.Status == v1.StatusComplete {
			expect["result"] = res.Content
		}
	}
	out = append(out, copyText{"Example for the manifest", yamlText(map[string]any{
		"examples": []any{map[string]any{"name": "from-the-console", "args": args, "expect": expect}},
	})})
	out = append(out, copyText{"Scenario", yamlText(map[string]any{
		"apiVersion": v1.APIVersion, "kind": v1.KindScenario, "metadata": map[string]any{"name": scenarioName(fullName)},
		"spec": map[string]any{"turns": []any{map[string]any{"calls": []any{map[string]any{"tool": fullName, "args": args, "expect": expect}}}}},
	})})
	if res != nil && res.Status == v1.StatusComplete {
		recorded := map[string]any{"tool": fullName, "args": args, "duration_ms": res.DurationMS}
		if len(res.Content) > 0 {
			recorded["result"] = res.Content
		}
		if len(res.Parts) > 0 {
			recorded["parts"] = res.Parts
		}
		out = append(out, copyText{"Cassette", yamlText(map[string]any{"redacted": rules, "calls": []any{recorded}})})
	}
	return out
}

func scenarioName(fullName string) string {
	_, name, _ := strings.Cut(fullName, "/")
	return strings.ToLower(strings.NewReplacer("_", "-").Replace(name)) + "-works"
}

func yamlText(v any) string {
	b, err := manifest.MarshalYAML(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// curl returns the call as a curl command for MCP 2026-07-28, which needs no session.
func curl(name string, args json.RawMessage, mcp string, token bool) string {
	const version = "2026-07-28"
	body, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": 1, "method": "tools/call",
		"params": map[string]any{"name": name, "arguments": args, "_meta": map[string]any{
			"io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientInfo": map[string]string{"name": "curl", "version": "1"},
			"io.modelcontextprotocol/clientCapabilities": map[string]any{},
		}},
	})
	if err != nil {
		return err.Error()
	}
	signed := ""
	if token {
		signed = "  -H \"Authorization: Bearer $TOKEN\" \\\n"
	}
	return fmt.Sprintf("curl %s \\\n%s  -H 'Content-Type: application/json' \\\n  -H 'Accept: application/json, text/event-stream' \\\n  -H 'Mcp-Protocol-Version: %s' \\\n  -H 'Mcp-Method: tools/call' \\\n  -H %s \\\n  -d %s",
		shellWord(mcp), signed, version, shellWord("Mcp-Name: "+name), shellWord(string(body)))
}

// shellWord quotes a word for a shell.
func shellWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+=,") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
