package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/redact"
	"toolctl.dev/toolctl/pkg/action"
)

// inEditor is the value of --edit-args that opens an editor.
const inEditor = "$EDITOR"

type decideOptions struct {
	*app
	approve  bool
	as       string
	groups   []string
	reason   string
	editArgs string
}

func newApprovalsDecideCmd(a *app, approve bool) *cobra.Command {
	o := &decideOptions{app: a, approve: approve}
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
		// An optional value that is not written with "=" is an argument to the parser of flags.
		if len(args) == 2 && o.editArgs == inEditor {
			return nil
		}
		return exactArgs(1, "the id of one call")(nil, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 2 {
			o.editArgs = args[1]
		}
		return o.run(cmd.Context(), args[0])
	}
	f := cmd.Flags()
	f.StringVar(&o.as, "as", "", "name of the person who decides, for the caller and the audit log (default: your login)")
	f.StringArrayVar(&o.groups, "as-group", nil, "group of the person who decides, for policies whose approvers name groups; may be repeated")
	f.StringVar(&o.reason, "reason", "", "reason, for the caller and the audit log")
	if approve {
		f.StringVar(&o.editArgs, "edit-args", "", "approve with other arguments: JSON, @FILE, or no value for $EDITOR")
		f.Lookup("edit-args").NoOptDefVal = inEditor
	}
	return cmd
}

func (o *decideOptions) run(ctx context.Context, id string) error {
	format := o.format()
	c, err := o.reaching(ctx)
	if err != nil {
		return err
	}
	verb := &action.Decide{Config: c, ID: id, Decision: v1.Decision{Approved: o.approve, By: o.as, Groups: o.groups, Reason: o.reason}}
	if o.editArgs != "" {
		verb.Edit = func(p *v1.PendingCall, check func(json.RawMessage) (bool, error)) (json.RawMessage, error) {
			return o.edited(ctx, p, check)
		}
	}
	v, err := verb.Run(ctx)
	if err != nil {
		return err
	}
	if done, err := o.encoded(format, v); done {
		return err
	}
	what := fmt.Sprintf("%s/%s %s", v.Namespace, v.Tool, clip.Line(string(v.Args)))
	if v.EditedArgs != nil {
		what = fmt.Sprintf("%s/%s with %s instead of %s", v.Namespace, v.Tool, clip.Line(string(v.EditedArgs)), clip.Line(string(v.Args)))
	}
	_, err = fmt.Fprintf(o.out, "%s: %s by %s\n", v.State, what, clip.Line(v.By))
	return err
}

// edited returns the arguments to approve instead; nil when an editor changed nothing.
func (o *decideOptions) edited(ctx context.Context, p *v1.PendingCall, check func(json.RawMessage) (bool, error)) (json.RawMessage, error) {
	var (
		raw  json.RawMessage
		from string
		err  error
	)
	switch file, isFile := strings.CutPrefix(o.editArgs, "@"); {
	case o.editArgs == inEditor:
		if raw, from, err = o.editor(ctx, p); raw == nil && err == nil {
			return nil, nil
		}
	case isFile:
		raw, err = o.callArgs(ctx, nil, file)
	case strings.HasPrefix(strings.TrimSpace(o.editArgs), "{"):
		raw, err = o.callArgs(ctx, []string{o.editArgs}, "")
	default:
		return nil, usagef("--edit-args %q: expected a JSON object, @FILE, or nothing for $EDITOR", clip.Words(o.editArgs, 60))
	}
	known := true
	if err == nil {
		known, err = check(raw)
	}
	if !known {
		fmt.Fprintf(o.err, "note: tool %s/%s is not known here, so the arguments are checked when it is called; -f names its manifest\n", p.Namespace, p.Tool)
	}
	switch {
	case from == "":
	case err != nil:
		fmt.Fprintf(o.err, "nothing is decided; your text is in %s: fix it and use --edit-args @%[1]s\n", from)
	default:
		err = os.Remove(from)
	}
	return raw, err
}

// shown is the arguments as a person edits them.
func shown(p *v1.PendingCall) []byte {
	var b bytes.Buffer
	if json.Indent(&b, redact.JSON(p.Args, p.Redact), "", "  ") != nil {
		return []byte("{}\n")
	}
	b.WriteByte('\n')
	return b.Bytes()
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
				return statusError{exitUnavailable, fmt.Sprintf("pending call %q has expired: it must be called again", p.ID)}
			}
			_, err = fmt.Fprintln(a.out, p.State)
			return err
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", time.Hour, "maximum time to wait")
	return cmd
}
