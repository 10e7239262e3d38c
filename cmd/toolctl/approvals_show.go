package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/internal/argtext"
	"toolctl.dev/toolctl/pkg/action"
)

func newApprovalsShowCmd(a *app) *cobra.Command {
	var limit, offset int
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a pending or past call with all of its arguments",
		Long: `Show a call that is or was pending, with all of its arguments, complete and
unshortened. Values covered by the tool's redact rules are masked. Invisible
characters and non-ASCII characters in keys are escaped, so that no two keys look alike.

On a terminal the output goes through $PAGER if it is set. --offset and --limit select
lines of the arguments; the last line of the output shows how many there are.`,
		Annotations: formats("text", "json", "yaml"),
		Example: `  toolctl approvals show ijk3u7e2mq
  PAGER=less toolctl approvals show ijk3u7e2mq
  toolctl approvals show ijk3u7e2mq --limit 40 --offset 40
  toolctl approvals show ijk3u7e2mq -o json`,
		Args:              exactArgs(1, "the id of one call"),
		ValidArgsFunction: a.completeApprovals,
		RunE: func(cmd *cobra.Command, ids []string) error {
			if limit < 0 || offset < 0 {
				return usagef("--limit and --offset must not be negative")
			}
			format := a.format()
			if format != "text" && (limit > 0 || offset > 0) {
				return usagef("--limit and --offset select lines of text: leave them out with -o %s", format)
			}
			views, err := (&action.Approvals{Config: a.stored(cmd.Context()), IDs: ids}).Run(cmd.Context())
			if err != nil {
				return err
			}
			if done, err := a.encoded(format, views[0]); done {
				return err
			}
			text, err := approvalText(&views[0], offset, limit)
			if err != nil {
				return err
			}
			return a.page(cmd.Context(), text)
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 0, "maximum number of lines of the arguments (default: all)")
	cmd.Flags().IntVar(&offset, "offset", 0, "lines of the arguments to skip")
	return cmd
}

// approvalText formats a call for the person who decides on it.
func approvalText(v *action.Approval, offset, limit int) (string, error) {
	var b strings.Builder
	line := fields{&b}.some
	line("ID", v.ID)
	line("State", v.State)
	line("Tool", v.Namespace+"/"+v.Tool)
	line("Policy", v.Policy+", rule "+v.Rule)
	for _, who := range v.Approvers {
		line("Approvers", who.String())
	}
	line("Caller", v.Principal)
	line("Session", v.Session)
	line("Created", clock(v.Created))
	line("Expires", clock(v.Expires))
	line("Decided by", v.By)
	line("Reason", v.Reason)
	for _, part := range []struct {
		name string
		args json.RawMessage
	}{{"Arguments", v.Args}, {"Approved with these arguments instead", v.EditedArgs}} {
		if part.args == nil {
			continue
		}
		text, err := argtext.Whole(part.args)
		if err != nil {
			return "", fmt.Errorf("the arguments of call %q cannot be shown: %w", v.ID, err)
		}
		all := strings.Split(text, "\n")
		from := min(offset, len(all))
		to := len(all)
		if limit > 0 {
			to = min(from+limit, to)
		}
		fmt.Fprintf(&b, "%s:\n", part.name)
		for _, l := range all[from:to] {
			b.WriteString("  " + l + "\n")
		}
		switch {
		case from == 0 && to == len(all):
		case from == to:
			fmt.Fprintf(&b, "no lines after %d\n", len(all))
		default:
			fmt.Fprintf(&b, "lines %d to %d of %d\n", from+1, to, len(all))
		}
	}
	return b.String(), nil
}

// page prints a text. On a terminal, it uses $PAGER if that is set.
func (a *app) page(ctx context.Context, text string) error {
	pager, _ := a.env("PAGER")
	words := strings.Fields(pager)
	out, ok := a.out.(*output)
	if len(words) == 0 || words[0] == "cat" || !ok || !isTerminal(out) {
		_, err := io.WriteString(a.out, text)
		return err
	}
	cmd := exec.CommandContext(ctx, words[0], words[1:]...) //nolint:gosec // the program is the user's own
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(string(escaped([]byte(text)))), out.w, a.err
	if err := cmd.Run(); err != nil && !errors.Is(err, syscall.EPIPE) { // a pager that is closed early closes the pipe
		return fmt.Errorf("$PAGER: %q failed: %w", pager, err)
	}
	return nil
}
