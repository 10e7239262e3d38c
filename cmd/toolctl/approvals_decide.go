package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/redact"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/pkg/action"
)

// inEditor is the value of --edit-args that opens an editor.
const inEditor = "$EDITOR"

type decideOptions struct {
	*app
	action.Decide
	editArgs string
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
		if len(args) == 2 && o.editArgs == inEditor {
			return nil
		}
		return exactArgs(1, "the id of one call")(nil, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 2 {
			o.editArgs = args[1]
		}
		o.ID = args[0]
		return o.run(cmd.Context())
	}
	f := cmd.Flags()
	f.StringVar(&o.Decision.By, "as", "", "name of the person who decides, for the caller and the audit log (default: your login)")
	f.StringArrayVar(&o.Decision.Groups, "as-group", nil, "group of the person who decides, for policies whose approvers name groups; may be repeated")
	f.StringVar(&o.Decision.Reason, "reason", "", "reason, for the caller and the audit log")
	if approve {
		f.StringVar(&o.editArgs, "edit-args", "", "approve with other arguments: JSON, @FILE, or no value for $EDITOR")
		f.Lookup("edit-args").NoOptDefVal = inEditor
	}
	return cmd
}

func (o *decideOptions) run(ctx context.Context) (err error) {
	o.Config = o.reaching(ctx)
	if o.editArgs != "" {
		o.Edit = func(p *v1.PendingCall, check func(json.RawMessage) (bool, error)) (json.RawMessage, error) {
			return o.edited(ctx, p, check)
		}
	}
	return printed(o.app, func(v *action.Approval) (string, error) {
		what := clip.Line(string(v.Args))
		if v.EditedArgs != nil {
			what = fmt.Sprintf("with %s instead of %s", clip.Line(string(v.EditedArgs)), what)
		}
		return fmt.Sprintf("%s: %s/%s %s by %s", v.State, v.Namespace, v.Tool, what, clip.Line(v.By)), nil
	})(o.Run(ctx))
}

// edited returns the arguments to approve instead, or nil if the user left them unchanged in the editor.
func (o *decideOptions) edited(ctx context.Context, p *v1.PendingCall, check func(json.RawMessage) (bool, error)) (raw json.RawMessage, err error) {
	from := "" // the editor's file, which is kept if its text is invalid
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
		fmt.Fprintf(o.err, "note: tool %s/%s is unknown here, so its arguments are checked when it is called; pass its manifest with -f\n", p.Namespace, p.Tool)
	}
	if from != "" && err != nil {
		fmt.Fprintf(o.err, "nothing was decided; your text is in %s: fix it and use --edit-args @%[1]s\n", from)
	} else if from != "" {
		err = os.Remove(from)
	}
	return raw, err
}

// editor lets the user edit the arguments of a call. It returns nil if they are unchanged, and otherwise also
// the file with the text, which the caller removes.
func (o *decideOptions) editor(ctx context.Context, p *v1.PendingCall) (raw json.RawMessage, file string, err error) {
	program, args := o.editorCommand()
	if program == "" {
		return nil, "", usagef("--edit-args without a value opens $EDITOR, which is not set: set it, or pass the arguments: --edit-args '{...}' or @FILE")
	}
	f, err := os.CreateTemp("", "toolctl-"+p.ID+"-*.json")
	if err != nil {
		return nil, "", err
	}
	var before bytes.Buffer
	if json.Indent(&before, redact.JSON(p.Args, p.Redact), "", "  ") != nil {
		before = *bytes.NewBufferString("{}")
	}
	_, err = f.WriteString(before.String() + "\n")
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, "", fmt.Errorf("write %s: %w", f.Name(), regular.Reason(err))
	}
	if err := o.openEditor(ctx, program, append(args, f.Name())); err != nil {
		return nil, "", errors.Join(fmt.Errorf("nothing was decided: %w", err), os.Remove(f.Name()))
	}
	after, err := os.ReadFile(f.Name())
	if err != nil {
		return nil, "", regular.Reason(err)
	}
	if bytes.Equal(bytes.TrimSpace(before.Bytes()), bytes.TrimSpace(after)) {
		return nil, "", os.Remove(f.Name())
	}
	raw, err = o.callArgs(ctx, nil, f.Name())
	return raw, f.Name(), err
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
