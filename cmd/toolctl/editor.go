package main

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
)

// editorCommand splits $VISUAL or $EDITOR at its spaces, as in "code --wait". A value with quotes or
// backslashes is split by the shell, as in git and kubectl.
func (a *app) editorCommand() (program string, args []string) {
	for _, name := range []string{"VISUAL", "EDITOR"} {
		if v, _ := a.env(name); strings.TrimSpace(v) != "" {
			if runtime.GOOS != "windows" && strings.ContainsAny(v, "\"'\\") {
				return "sh", []string{"-c", v + ` "$@"`, "sh"}
			}
			words := strings.Fields(v)
			return words[0], words[1:]
		}
	}
	return "", nil
}

// openEditor starts the editor and returns when the user has closed it.
func (a *app) openEditor(ctx context.Context, program string, args []string) error {
	cmd := exec.CommandContext(ctx, program, args...)      //nolint:gosec // the program is the user's own
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.in, a.err, a.err // stdout is for the result of the command
	if out, ok := a.out.(*output); ok && isTerminal(out) {
		cmd.Stdout = out.w
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the editor %q failed: %w", program, err)
	}
	return nil
}
