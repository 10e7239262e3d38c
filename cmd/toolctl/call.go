package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/registry"
)

type callOptions struct {
	*app
	action.Call
	noInput, dryRun bool
}

func newCallCmd(a *app) *cobra.Command {
	o := &callOptions{app: a}
	cmd := &cobra.Command{
		Use:   "call NAME [-a key=value]...",
		Short: "Call a tool and print its result",
		Long: `Call a tool and print the content of its result: indented on a terminal, on one line
in a pipe. toolctl coerces and validates the arguments, checks the policies, makes the
call and validates the result.

When a call needs approval, toolctl asks at the terminal, unless the policy names
approvers. Otherwise, and with --no-input, it exits with code 6 and prints how to approve.

NAME is namespace/name, name, server__tool, server.tool, mcp__server__tool, or the
bare name of a tool that only one server has.

-a accepts paths into nested objects: -a body.stock=4 is -a 'body:={"stock":4}'.

Output formats (-o): json and yaml print the whole result, text prints its text, and
with --dry-run curl prints the HTTP request as a command.`,
		Annotations: formats("content", "json", "yaml", "text", "curl"),
		Example: `  toolctl call -f manifests/weather.yaml get-weather -a location=Oslo
  toolctl call get-weather -a '{"location":"Oslo","units":"metric"}' -o json
  echo '{"location":"Oslo"}' | toolctl call get-weather -a -
  toolctl call pay-invoice --args-file invoice.json --session chat-7 --turn 2
  toolctl call get-weather -a location=Oslo --dry-run
  toolctl call draw-chart -a city=Oslo --save charts/`,
		Args:              toolAndFlags,
		ValidArgsFunction: a.completeTools,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Tool = args[0]
			return o.run(cmd.Context())
		},
	}
	a.bindArgs(cmd, v1.KindTool, &o.Arguments)
	a.bindCaller(cmd, &o.Session, &o.Principal)
	f := cmd.Flags()
	f.StringVar(&o.Turn, "turn", "", "turn within the session (default: one turn for all calls without --turn)")
	f.StringVar(&o.Approval, "approval", "", "id of the pending call that this one repeats (default: the one of the same session, tool and arguments)")
	f.BoolVar(&o.noInput, "no-input", false, "do not ask at the terminal")
	f.DurationVar(&o.Timeout, "timeout", 0, "maximum time for the call, including connections, such as 5s (default: the tool's timeout_ms)")
	f.BoolVar(&o.dryRun, "dry-run", false, "print what the call would do without making it")
	f.StringVar(&o.Save, "save", "", "folder to write images, audio and other binary parts of the result to")
	a.bindAudit(cmd)
	a.bindNetwork(f, "")
	return cmd
}

// toolAndFlags accepts the name of one tool. If arguments follow it without -a, the error shows the right command.
func toolAndFlags(cmd *cobra.Command, args []string) error {
	if len(args) <= 1 {
		return exactArgs(1, "the name of one tool")(cmd, args)
	}
	meant := cmd.CommandPath() + " " + args[0]
	for _, arg := range args[1:] {
		if _, _, err := action.ParseArgs([]string{arg}); err != nil {
			return usagef("unexpected argument %s: pass tool arguments with -a, as in '%s -a key=value%s'", quoted(arg), meant, sourceFlags(cmd))
		}
		meant += " -a " + shellWord(arg)
	}
	return usagef("arguments are given with -a: %s", meant+sourceFlags(cmd))
}

func (o *callOptions) run(ctx context.Context) (err error) {
	format := o.format()
	if format == "curl" && !o.dryRun {
		return usagef("-o curl needs --dry-run")
	}
	o.Config = o.reaching(ctx)
	if o.dryRun {
		plan, err := o.Plan(ctx)
		if err != nil {
			return err
		}
		return o.printPlan(format, plan)
	}
	o.Asker = o.askerBeside(&o.Arguments, o.noInput)
	res, err := o.Call.Run(ctx)
	if res == nil {
		return err
	}
	if perr := o.printResult(format, res.Result, res.Status == v1.StatusComplete); perr != nil {
		return perr
	}
	for _, p := range res.Saved {
		fmt.Fprintf(o.err, "saved %s (%s, %s)\n", clip.Line(filepath.Join(o.Save, p.Name)), clip.Line(p.MediaType), count(p.Bytes, "byte"))
	}
	switch {
	case err != nil:
		return err
	case res.Status == v1.StatusPending:
		return statusError{exitPending, o.pendingText(res.Stored, res.Pending)}
	case res.Status == v1.StatusFailed:
		return statusError{exitFailed, fmt.Sprintf("tool %q failed", res.Result.Tool)}
	case o.Save != "" && len(res.Saved) == 0:
		fmt.Fprintln(o.err, "nothing was saved: the result has no binary parts")
	}
	return nil
}

// printResult prints a result. A failed call prints nothing, except with -o json or yaml.
func (o *callOptions) printResult(format string, res v1.Result, complete bool) error {
	if done, err := o.encoded(format, res); done {
		return err
	}
	if !complete {
		return nil
	}
	if res.Pages > 0 { // the content is the list, and a text part says which pages were not read
		for _, p := range res.Parts {
			fmt.Fprintln(o.err, "warning: "+p.Text)
		}
		res.Parts = nil
	}
	if format == "text" {
		return o.printText(res)
	}
	return o.printContent(res.Content)
}

// printText prints the text parts of a result. Without text parts, it prints the content: a string, or the text of an
// HTTP response, without quotes, and any other content as JSON.
func (o *callOptions) printText(res v1.Result) error {
	printed := false
	for _, p := range res.Parts {
		if p.Type == v1.PartText {
			fmt.Fprintln(o.out, p.Text)
			printed = true
		}
	}
	if printed {
		return nil
	}
	var s string
	var response map[string]json.RawMessage // {"result": text} of a response that is not JSON
	if json.Unmarshal(res.Content, &response) == nil && len(response) == 1 {
		_ = json.Unmarshal(response["result"], &s)
	}
	if s != "" || json.Unmarshal(res.Content, &s) == nil {
		_, err := fmt.Fprintln(o.out, strings.TrimSuffix(s, "\n"))
		return err
	}
	return o.printContent(res.Content)
}

// printPlan prints the result of a dry run.
func (o *callOptions) printPlan(format string, p registry.Plan) error {
	type curler interface{ Curl() string }
	switch format {
	case "curl":
		c, ok := p.Request.(curler)
		if !ok {
			return usagef("-o curl: tool %q is executed by the %s executor, which sends no HTTP request", p.Tool, p.Executor)
		}
		_, err := fmt.Fprintln(o.out, strings.TrimRight(c.Curl(), "\n"))
		return err
	case "yaml":
		return printYAML(o.out, p)
	}
	return printJSON(o.out, p)
}
