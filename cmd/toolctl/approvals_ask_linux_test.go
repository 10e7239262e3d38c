package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal opens a pseudo-terminal and returns its two ends.
func terminal(t *testing.T) (keyboard, tty *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { keyboard.Close() })
	if err := unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close() })
	return keyboard, tty
}

func TestCallAsksAtATerminal(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "shop.yaml"), `
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: pay}
spec:
  description: Pay
  redact: [card]
  input_schema: {type: object, properties: {amount: {type: number}, card: {type: string}, note: {type: string}}}
  mock_template: '{"paid":{{.amount}}}'
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: careful}
spec: {require_approval: [pay]}
`)
	for _, tt := range []struct {
		name, typed string
		args        []string
		code        int
		asked       bool
		stderr      string
	}{
		{name: "yes", typed: "y\n", code: exitOK, asked: true},
		{name: "a whole word", typed: "Yes\n", code: exitOK, asked: true},
		{name: "no", typed: "n\n", code: exitRefused, asked: true, stderr: "rule require_approval: denied by "},
		{name: "nothing is no", typed: "\n", code: exitRefused, asked: true, stderr: "rule require_approval: denied by "},
		{name: "the end of the input is no answer", typed: "\x04", code: exitPending, asked: true, stderr: "pending: tool"},
		{name: "not asked with --no-input", args: []string{"--no-input"}, code: exitPending, stderr: "pending: tool"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			keyboard, tty := terminal(t)
			r, w := io.Pipe()
			ended := make(chan int, 1)
			go func() {
				args := append([]string{"call", "-f", dir, "pay", "-a", "amount=5", "-a", "card=4111", "-a", "note=a\u202eb"}, tt.args...)
				ended <- run(context.Background(), args, tty, tty, w)
				w.Close()
			}()
			var said strings.Builder
			in := bufio.NewReader(r)
			for {
				c, err := in.ReadByte()
				if err != nil {
					break
				}
				said.WriteByte(c)
				if strings.HasSuffix(said.String(), "[y/N] ") {
					if _, err := keyboard.WriteString(tt.typed); err != nil {
						t.Error(err)
					}
				}
			}
			if code := <-ended; code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			text := said.String()
			const question = "tool \"pay\" needs approval by policy \"careful\":\n  {\n    \"amount\": 5,\n    \"card\": \"[REDACTED]\",\n    \"note\": \"a\\u202eb\"\n  }\nAllow this call? [y/N] "
			if strings.HasPrefix(text, question) != tt.asked || !strings.Contains(text, tt.stderr) || strings.Contains(text, "4111") {
				t.Errorf("got %q, want %q", text, tt.stderr)
			}
		})
	}
}
