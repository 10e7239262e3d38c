// Command toolctl manages the tools, prompts and policies of AI agents as YAML manifests: it validates, tests, diffs
// and applies them, calls tools, and serves them as one MCP server. This package declares flags, prints results and
// maps errors to exit codes; pkg/action does the work.
package main

import (
	"context"
	"errors"
	"io"
	"os"

	"toolctl.dev/toolctl/internal/tty"
	"toolctl.dev/toolctl/pkg/permit"
	"toolctl.dev/toolctl/pkg/telemetry"
)

func main() {
	catchFileSize()
	os.Exit(run(tty.UntilSignal(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run runs the program without touching global state, and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	out := &output{w: stdout}
	a := &app{in: stdin, out: out, err: screen{w: stderr}, env: os.LookupEnv}
	a.conf.Permit = &permit.Rules{}
	a.conf.Gateway.Hurry = tty.Interrupted(ctx)
	defer a.endTelemetry()
	ctx = telemetry.FromEnv(ctx, a.env)
	root := newRootCmd(a)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(out)
	root.SetErr(a.err)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil || errors.Is(err, out.err) {
		err = out.lost()
	}
	if err == nil && ctx.Err() != nil && !a.lasting {
		err = ctx.Err() // an interrupted command may have ended early without an error
	}
	if err != nil {
		return a.report(calledPath(cmd), err)
	}
	return exitOK
}
