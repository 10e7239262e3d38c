package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// TestScreenGetsNoControlCharacters checks that texts of models, tools and prompts cannot control a terminal, and
// reach a pipe unchanged.
func TestScreenGetsNoControlCharacters(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "p.yaml"), `
apiVersion: toolctl.dev/v1
kind: Prompt
metadata: {name: p}
spec: {template: "Hello {{.x}}"}
`)
	script := filepath.Join(dir, "replies.txt")
	writeFile(t, script, `- text: "fine\n\e[2Jgone\rover \e]0;title\a"`)
	for _, tt := range []struct {
		name         string
		args         []string
		screen, pipe string
	}{
		{name: "the answer of a run", args: []string{"run", "p", "-a", "x=1", "--script", script},
			screen: "fine\n⟨U+001B⟩[2Jgone⟨U+000D⟩over ⟨U+001B⟩]0;title⟨U+0007⟩\n", pipe: "fine\n\x1b[2Jgone\rover \x1b]0;title\a\n"},
		{name: "a run that streams", args: []string{"run", "p", "-a", "x=1", "--script", script, "--stream"},
			screen: "fine\n⟨U+001B⟩[2Jgone⟨U+000D⟩over ⟨U+001B⟩]0;title⟨U+0007⟩\n", pipe: "fine\n\x1b[2Jgone\rover \x1b]0;title\a\n"},
		{name: "a prompt", args: []string{"render", "p", "-a", "x=\x1b[2Jworld"},
			screen: "user: Hello ⟨U+001B⟩[2Jworld\n", pipe: "user: Hello \x1b[2Jworld\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := append(tt.args, "-f", dir)
			var out, stderr bytes.Buffer
			if code := run(t.Context(), args, strings.NewReader(""), &out, &stderr); code != exitOK || out.String() != tt.pipe {
				t.Errorf("on a pipe: code %d, %q, want %q; stderr %s", code, out.String(), tt.pipe, stderr.String())
			}
			keyboard, tty := terminal(t)
			if code := run(t.Context(), args, strings.NewReader(""), tty, &stderr); code != exitOK {
				t.Fatalf("code %d: %s", code, stderr.String())
			}
			var said []byte
			for buf := make([]byte, 4096); bytes.Count(said, []byte("\n")) < strings.Count(tt.screen, "\n"); {
				n, err := keyboard.Read(buf)
				if err != nil {
					t.Fatal(err)
				}
				said = append(said, buf[:n]...)
			}
			if got := strings.ReplaceAll(string(said), "\r\n", "\n"); got != tt.screen {
				t.Errorf("on a terminal: %q, want %q", got, tt.screen)
			}
		})
	}
}
