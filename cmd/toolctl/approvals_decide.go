package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/action"
)

type decideOptions struct {
	*app
	action.Decide
}

func newApprovalsDecideCmd(a *app, approve bool) *cobra.Command {
	o := &decideOptions{app: a, Decide: action.Decide{Decision: v1.Decision{Approved: approve}}}
	cmd := &cobra.Command{
		Use:   "deny ID",
		Short: "Deny a pending call",
		Long: `Deny a pending call. The caller is told who denied it and why, now and each time
it repeats the call until the request expires.`,
		Annotations: formats("text", "json", "yaml"),
		Example:     `  toolctl approvals deny ijk3u7e2mq --reason 'too expensive'`,
	}
	if approve {
		cmd.Use, cmd.Short = "approve ID", "Approve a pending call"
		cmd.Long = `Approve a pending call, once: the caller repeats the call with the same arguments.
The approval is valid until the request expires.

--edit-args approves the call with different arguments: a JSON object, @FILE, or, without
a value, the arguments as you edit them in $EDITOR. Values that you leave as [REDACTED]
keep the value that the caller sends. toolctl validates the arguments now if the tool is
in the store or in -f, and again when the call is made.`
		cmd.Example = `  toolctl approvals approve ijk3u7e2mq
  toolctl approvals approve ijk3u7e2mq --as ann --reason 'agreed by phone'
  toolctl approvals approve ijk3u7e2mq --edit-args '{"invoice":"INV-1","amount":4}'
  toolctl approvals approve ijk3u7e2mq --edit-args`
	}
	cmd.ValidArgsFunction = a.completeApprovals
	cmd.Args = func(_ *cobra.Command, args []string) error {
		// The flag parser treats an optional value without "=" as an argument.
		if len(args) == 2 && o.EditArgs == action.InEditor {
			return nil
		}
		return exactArgs(1, "the id of one call")(nil, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 2 {
			o.EditArgs = args[1]
		}
		o.ID = args[0]
		return o.run(cmd.Context())
	}
	f := cmd.Flags()
	f.StringVar(&o.Decision.By, "as", "", "name of the person who decides, for the caller and the audit log (default: your login)")
	f.StringArrayVar(&o.Decision.Groups, "as-group", nil, "group of the person who decides, for policies whose approvers name groups; may be repeated")
	f.StringVar(&o.Decision.Reason, "reason", "", "reason, for the caller and the audit log")
	if approve {
		f.StringVar(&o.EditArgs, "edit-args", "", "approve with other arguments: JSON, @FILE, or no value for $EDITOR")
		f.Lookup("edit-args").NoOptDefVal = action.InEditor
	}
	return cmd
}

func (o *decideOptions) run(ctx context.Context) error {
	if program, _ := o.editorCommand(); program == "" && o.EditArgs == action.InEditor {
		return usagef("--edit-args without a value opens $EDITOR, which is not set: set it, or pass the arguments: --edit-args '{...}' or @FILE")
	}
	o.Config, o.Editor, o.Noted = o.reaching(ctx), o.edit, func(text string) { fmt.Fprintln(o.err, text) }
	return printed(o.app, func(v *action.Approval) (string, error) {
		what := clip.Line(string(v.Args))
		if v.EditedArgs != nil {
			what = fmt.Sprintf("with %s instead of %s", clip.Line(string(v.EditedArgs)), what)
		}
		return fmt.Sprintf("%s: %s/%s %s by %s", v.State, v.Namespace, v.Tool, what, clip.Line(v.By)), nil
	})(o.Run(ctx))
}

func newApprovalsWaitCmd(a *app) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "wait ID",
		Short: "Wait for the decision on a call",
		Long: `Wait for the decision on a call, and print its state. The exit code is 0 if the
call was approved, 4 if it was denied, and 7 if it expired or the wait timed out.`,
		Example:           `  toolctl approvals wait ijk3u7e2mq --timeout 10m && toolctl call pay-invoice -a invoice=INV-1`,
		Args:              exactArgs(1, "the id of one call"),
		ValidArgsFunction: a.completeApprovals,
		RunE: func(cmd *cobra.Command, args []string) error {
			if timeout <= 0 {
				return usagef("--timeout %s: expected a time above 0", timeout)
			}
			p, err := (&action.AwaitDecision{Config: a.stored(cmd.Context()), ID: args[0], Timeout: timeout}).Run(cmd.Context())
			if err != nil {
				return err
			}
			switch p.State {
			case v1.ApprovalDenied:
				text := fmt.Sprintf("call %q was denied by %s", p.ID, clip.Line(p.By))
				if p.Reason != "" {
					text += ": " + clip.Line(p.Reason)
				}
				return statusError{exitRefused, text}
			case v1.ApprovalExpired:
				return statusError{exitUnavailable, fmt.Sprintf("pending call %q has expired: repeat the tool call", p.ID)}
			}
			return a.done(nil, "%s", p.State)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", time.Hour, "maximum time to wait")
	return cmd
}
