package main

import (
	"encoding/json"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"toolctl.dev/toolctl/pkg/manifest"
)

// obeyed matches everything that a terminal would not just print, except our own colours.
var obeyed = regexp.MustCompile("\x1b(?:[^\\[]|\\[(?:[^03]|0[^m]|3[^123]|3[123][^m]))|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f\u0080-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\U000f0000-\U000fffff]")

// TestScreenGetsNothingOfServers checks that no text of an MCP server, about itself, its tools, prompts and resources,
// in results or in errors, controls the terminal or appears in our colours.
func TestScreenGetsNothingOfServers(t *testing.T) {
	const evil = "x\x1b[2J\x1b]0;title\x07\u009b2J\u202ey\x1b[31mFOREIGN\x1b[0m\u2066z\u200f\u2028\x7f"
	quotedEvil, err := json.Marshal(evil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	writeFile(t, filepath.Join(dir, "server.json"), strings.ReplaceAll(`{"name": "evil", "version": EVIL, "tools": [
		{"name": "say", "title": EVIL, "description": EVIL, "inputSchema": {"type": "object", "properties": {EVIL: {"type": "string", "description": EVIL}}}, "result": {"content": [{"type": "text", "text": EVIL}]}},
		{"name": "fail", "description": EVIL, "inputSchema": {"type": "object"}, "result": {"isError": true, "content": [{"type": "text", "text": EVIL}]}}
	]}`, "EVIL", string(quotedEvil)))
	text, err := manifest.MarshalYAML(map[string]any{
		"apiVersion": "toolctl.dev/v1", "kind": "Prompt", "metadata": map[string]any{"name": "p", "annotations": map[string]string{"a": evil}},
		"spec": map[string]any{"description": evil, "template": "Hello " + evil + " {{.x}}", "variables": []any{map[string]any{"name": "x", "description": evil}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "all.yaml"), `
apiVersion: toolctl.dev/v1
kind: MCPServer
metadata: {name: evil}
spec: {command: `+quoted(linked(t, "mcpserver"))+`, args: [server.json]}
---
`+string(text))
	writeFile(t, filepath.Join(dir, "shop.yaml"), `
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: pay}
spec: {description: Pay, input_schema: {type: object}, mock_result: paid}
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: careful}
spec: {require_approval: [pay]}
`)
	onScreen := func(args ...string) string {
		t.Helper()
		keyboard, tty := terminal(t)
		said := make(chan string, 1)
		go func() {
			var b strings.Builder
			_, _ = io.Copy(&b, keyboard) // ends with an error when the other end is closed
			said <- b.String()
		}()
		run(t.Context(), args, strings.NewReader(""), tty, tty)
		tty.Close()
		select {
		case text := <-said:
			return strings.ReplaceAll(text, "\r\n", "\n")
		case <-time.After(time.Minute):
			t.Fatal("the terminal did not end")
			return ""
		}
	}
	check := func(args ...string) string {
		t.Helper()
		text := onScreen(args...)
		if at := obeyed.FindStringIndex(text); at != nil || strings.Contains(text, "\x1b[31mFOREIGN") || text == "" {
			t.Errorf("toolctl %s: %v of %q", strings.Join(args, " "), at, text)
		}
		return text
	}
	for _, command := range []string{
		"list tools", "list tools -o wide", "list tools -o name", "list tools -o json", "list tools -o yaml", "list prompts -o wide", "list mcpservers -o wide",
		"get tools -o jsonpath={.items[*].spec.description}", "get tools -o custom-columns=D:.spec.description",
		"describe tool evil__say", "describe mcpserver evil", "describe prompt p", "lock", "lock --check",
		"call evil__say", "call evil__say -o json", "call evil__fail", "render p -a x=1", "render p -a x=1 -o json", "call nothing" + evil,
	} {
		check(append(strings.Fields(strings.ReplaceAll(command, evil, "\x1b[2J"+"\u202e")), "-f", "all.yaml")...)
	}
	// Approvals contain texts of a caller, which may be a model.
	args, _ := json.Marshal(map[string]any{"a" + evil: evil})
	var said strings.Builder
	if code := run(t.Context(), []string{"apply", "-f", "shop.yaml"}, strings.NewReader(""), io.Discard, &said); code != exitOK {
		t.Fatal("apply: ", code, said.String())
	}
	if code := run(t.Context(), []string{"call", "pay", "-a", string(args), "--principal", "m" + evil, "--no-input"}, strings.NewReader(""), io.Discard, &said); code != exitPending {
		t.Fatal("call: ", code, said.String())
	}
	id := strings.TrimSpace(onScreen("approvals", "list", "-o", "name"))
	for _, command := range []string{"approvals list", "approvals list -o wide", "approvals list -o json", "approvals list -o yaml", "approvals show " + id, "approvals show " + id + " -o yaml", "approvals approve " + id, "audit list -o wide", "audit list -o json"} {
		check(strings.Fields(command)...)
	}
	// The character is split over two writes.
	keyboard, tty := terminal(t)
	s := screen{w: tty}
	for _, piece := range []string{"a\xc2", "\x9b2Jb", paintOf(red) + "ours" + paintEnd + "\n"} {
		if _, err := s.Write([]byte(piece)); err != nil {
			t.Fatal(err)
		}
	}
	got := make([]byte, 200)
	n, err := keyboard.Read(got)
	for err == nil && !strings.Contains(string(got[:n]), "\n") {
		var more int
		more, err = keyboard.Read(got[n:])
		n += more
	}
	if text := string(got[:n]); text != "a\ufffd\ufffd2Jb\x1b[31mours\x1b[0m\r\n" {
		t.Errorf("got %q", text)
	}
}
