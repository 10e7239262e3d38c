package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/registry"
)

type callOptions struct {
	*app
	tool      string
	args      []string
	argsFile  string
	session   string
	turn      string
	principal string
	approval  string
	noInput   bool
	timeout   time.Duration
	dryRun    bool
	save      string
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
			o.tool = args[0]
			return o.run(cmd)
		},
	}
	f := cmd.Flags()
	f.StringArrayVarP(&o.args, "arg", "a", nil, argsHelp)
	_ = cmd.RegisterFlagCompletionFunc("arg", a.completeArgs)
	f.StringVar(&o.argsFile, "args-file", "", "file with a JSON or YAML object of arguments; - reads stdin")
	f.StringVar(&o.session, "session", "", "session whose policy counters apply (default: a new session)")
	_ = cmd.RegisterFlagCompletionFunc("session", a.fromStore(inOrder, sessions))
	f.StringVar(&o.turn, "turn", "", "turn within the session (default: one turn for all calls without --turn)")
	f.StringVar(&o.principal, "principal", "", "principal that makes the call, as policies match it (default: none)")
	f.StringVar(&o.approval, "approval", "", "id of the pending call that this one repeats (default: the one of the same session, tool and arguments)")
	f.BoolVar(&o.noInput, "no-input", false, "do not ask at the terminal")
	f.DurationVar(&o.timeout, "timeout", 0, "maximum time for the call, including connections, such as 5s (default: the tool's timeout_ms)")
	f.BoolVar(&o.dryRun, "dry-run", false, "print what the call would do without making it")
	f.StringVar(&o.save, "save", "", "folder to write images, audio and other binary parts of the result to")
	a.bindAudit(cmd)
	a.bindNetwork(f, "")
	return cmd
}

// toolAndFlags takes the name of one tool, and says how arguments are given when they stand
// behind it without -a.
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

func (o *callOptions) run(cmd *cobra.Command) error {
	ctx := cmd.Context()
	format := o.format()
	if format == "curl" && !o.dryRun {
		return usagef("-o curl needs --dry-run")
	}
	if o.timeout < 0 {
		return usagef("--timeout %s: expected a time above 0", o.timeout)
	}
	args, pairs, err := o.argsAndPairs(ctx, o.args, o.argsFile)
	if err != nil {
		return err
	}
	w, err := o.open(ctx, func(g *gateway.Options) {
		if len(o.conf.Files) == 0 {
			g.Source = gateway.StoredTool(g.Store, o.conf.Namespace, o.tool)
		}
	})
	if err != nil {
		return err
	}
	defer o.closing(w)
	o.warnViolations(w)
	o.tool = toolName(w.Registry, o.tool)
	return w.OtherKind(v1.KindTool, o.conf.Namespace, o.tool, o.call(ctx, w, format, args, pairs))
}

// call makes the call in an open workspace.
func (o *callOptions) call(ctx context.Context, w *action.Workspace, format string, args json.RawMessage, pairs map[string]json.RawMessage) error {
	call, err := o.prepare(ctx, w, v1.Call{Tool: o.tool, Namespace: o.conf.Namespace, Args: args, Session: o.session, Turn: o.turn, Principal: o.principal, Approval: o.approval, Timeout: o.timeout})
	if err != nil {
		return err
	}
	if it, err := w.Registry.Lookup(call.Namespace, call.Tool); err == nil {
		if call.Args, err = action.NestedArgs(it.Tool(), call.Args, pairs); err != nil {
			return err
		}
		for _, text := range action.Misspelt(it.Tool(), call.Args) {
			fmt.Fprintln(o.err, "warning: "+text)
		}
	}
	if o.dryRun {
		plan, err := w.Registry.Plan(ctx, call)
		if err != nil {
			return unwritten(err, pairs)
		}
		return o.printPlan(format, plan)
	}
	if !o.noInput && o.canAsk() && o.stdinOnce(append([]string{"-"}, o.args...), o.argsFile) == nil { // stdin is not read for arguments
		ctx = registry.WithAsker(ctx, o.asker())
	}
	var dir *action.SaveDir
	if o.save != "" {
		if dir, err = action.OpenSaveDir(o.save); err != nil {
			return err
		}
		defer dir.Close()
	}
	res, err := w.Registry.Execute(ctx, call)
	if perr := o.printResult(format, res, err == nil && res.Status == v1.StatusComplete); perr != nil {
		return perr
	}
	if dir != nil && err == nil && res.Status == v1.StatusComplete {
		saved, err := dir.Save(res)
		for _, p := range saved {
			fmt.Fprintf(o.err, "saved %s (%s, %s)\n", clip.Line(filepath.Join(o.save, p.Name)), clip.Line(p.MediaType), count(p.Bytes, "byte"))
		}
		if err != nil {
			return err
		}
		if len(saved) == 0 {
			fmt.Fprintln(o.err, "nothing was saved: the result has no binary parts")
		}
	}
	if err == nil && res.Status == v1.StatusPending {
		return statusError{exitPending, o.pendingText(w, res.Pending)}
	}
	if err == nil && res.Status == v1.StatusFailed {
		return statusError{exitFailed, fmt.Sprintf("tool %q failed", res.Tool)}
	}
	return unwritten(err, pairs)
}

// unwritten adds to an error of arguments how the one that was given as a text is written.
func unwritten(err error, pairs map[string]json.RawMessage) error {
	if invalid, ok := errors.AsType[*v1.ValidationError](err); ok && invalid.Type == v1.ArgsInvalid {
		if how := action.Unwritten(invalid, pairs); how != "" {
			return fmt.Errorf("%w: %s", err, how)
		}
	}
	return err
}

// toolName takes tool/NAME too, which list prints, where no namespace is called like a kind.
func toolName(reg *registry.Registry, name string) string {
	word, rest, ok := strings.Cut(name, "/")
	if kind, err := parseKind(word); !ok || err != nil || kind != v1.KindTool {
		return name
	}
	if p, err := reg.List(registry.Query{Namespace: word, Limit: 1}); err != nil || p.Total > 0 {
		return name
	}
	return rest
}

// printResult prints a result; a call that failed prints nothing but a Result
// that was asked for.
func (o *callOptions) printResult(format string, res v1.Result, complete bool) error {
	if done, err := o.encoded(format, res); done {
		return err
	}
	if !complete {
		return nil
	}
	if res.Pages > 0 { // the list is the content, and what was not read of it is a text
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

// printText prints the text of a result: its text parts, else a content that is
// a string or the text of an HTTP response, without its quotes, else the content as JSON.
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

// printPlan prints what a dry run found.
func (o *callOptions) printPlan(format string, p registry.Plan) error {
	type curler interface{ Curl() string }
	switch format {
	case "curl":
		c, ok := p.Request.(curler)
		if !ok {
			return usagef("-o curl: tool %q is carried out by the %s executor, which sends no HTTP request", p.Tool, p.Executor)
		}
		_, err := fmt.Fprintln(o.out, strings.TrimRight(c.Curl(), "\n"))
		return err
	case "yaml":
		return printYAML(o.out, p)
	}
	return printJSON(o.out, p)
}
