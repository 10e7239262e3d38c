// Command toolctl keeps the tools that AI agents use as manifests in git: it
// validates, applies, lists and calls them.
package main

import (
	"context"
	"errors"
	"io"
	"os"

	"toolctl.dev/toolctl/internal/tty"
	"toolctl.dev/toolctl/pkg/telemetry"
)

func main() {
	catchFileSize()
	os.Exit(run(tty.UntilSignal(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole program; it touches no global state and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	out := &output{w: stdout}
	a := &app{in: stdin, out: out, err: screen{w: stderr}, env: os.LookupEnv}
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
		err = ctx.Err() // it ended with what it had
	}
	if err != nil {
		return a.report(calledPath(cmd), err)
	}
	return exitOK
}
