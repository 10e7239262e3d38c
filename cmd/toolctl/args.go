package main

import (
	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/registry"
)

// bindArgs adds -a and --args-file for the arguments of a tool or the variables of a prompt.
func (a *app) bindArgs(cmd *cobra.Command, kind string, args *action.Arguments) {
	usage, what := "argument as key=value, key:=JSON, or a whole JSON object; - reads an object from stdin; may be repeated", "arguments"
	if kind == v1.KindPrompt {
		usage, what = "variable as key=value or key:=JSON, or all variables as a JSON object, @FILE or - for stdin; may be repeated", "variables"
	}
	cmd.Flags().StringArrayVarP(&args.Flags, "arg", "a", nil, usage)
	cmd.Flags().StringVar(&args.File, "args-file", "", "file with a JSON or YAML object of "+what+"; - reads stdin")
	_ = cmd.RegisterFlagCompletionFunc("arg", a.completeArgs(kind))
}

// bindCaller adds the flags that identify the caller to policies.
func (a *app) bindCaller(cmd *cobra.Command, session, principal *string) {
	cmd.Flags().StringVar(session, "session", "", "session whose policy counters apply (default: a new session)")
	_ = cmd.RegisterFlagCompletionFunc("session", a.fromStore(inOrder, sessions))
	cmd.Flags().StringVar(principal, "principal", "", "principal that makes the call, as policies match it (default: none)")
}

// askerBeside returns an asker that requests approval at the terminal. It returns nil if nobody can answer, or if the
// arguments come from stdin.
func (a *app) askerBeside(args *action.Arguments, noInput bool) registry.Asker {
	if noInput || !a.canAsk() || args.ReadsStdin(&a.conf) {
		return nil
	}
	return a.asker()
}
