package main

import (
	"cmp"
	"fmt"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/action"
)

func newApprovalsCmd(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "approvals",
		Short: "List, approve and deny pending calls",
		Long: `Review the calls that wait for approval because a ToolPolicy lists their tool under
require_approval. Pending calls are in the store, so you can decide on them from another
terminal, and they survive restarts of 'toolctl serve'.

An approval allows one call of the same tool with the same arguments by the same
caller: the caller repeats the call. A call without a decision expires.`,
		Example: `  toolctl approvals list
  toolctl approvals show ijk3u7e2mq
  toolctl approvals approve ijk3u7e2mq
  toolctl approvals deny ijk3u7e2mq --reason 'too expensive'`,
	}, newApprovalsListCmd(a), newApprovalsShowCmd(a), newApprovalsDecideCmd(a, true), newApprovalsDecideCmd(a, false), newApprovalsWaitCmd(a))
}

func newApprovalsListCmd(a *app) *cobra.Command {
	var verb action.Approvals
	var limit, offset int
	cmd := &cobra.Command{
		Use:   "list [ID]...",
		Short: "List pending and past approval requests",
		Long: `List the pending calls and the last 1,000 decided or expired ones, newest last.
Arguments covered by the tool's redact rules are masked. Tables shorten long
arguments; 'toolctl approvals show' prints them in full.

A call is pending, approved, denied, used (approved and made) or expired.`,
		Annotations: formats("table", "wide", "json", "yaml", "name"),
		Example: `  toolctl approvals list --state pending
  toolctl approvals list --limit 20 --offset 20
  toolctl approvals list ijk3u7e2mq -o yaml`,
		ValidArgsFunction: a.completeApprovals,
		RunE: func(cmd *cobra.Command, ids []string) error {
			if limit < 0 || offset < 0 {
				return usagef("--limit and --offset must not be negative")
			}
			verb.Config, verb.IDs = a.stored(cmd.Context()), ids
			views, err := verb.Run(cmd.Context())
			if err != nil {
				return err
			}
			total := len(views)
			views = views[min(offset, total):]
			if limit > 0 {
				views = views[:min(limit, len(views))]
			}
			if err := a.printApprovals(views); err != nil {
				return err
			}
			if len(views) < total && (a.format() == "table" || a.format() == "wide") {
				fmt.Fprintf(a.err, "%d of %d shown\n", len(views), total)
			}
			return nil
		},
	}
	bindSelector(cmd.Flags(), &verb.Selector, "calls of tools of the store")
	cmd.Flags().IntVar(&limit, "limit", 0, "maximum number of calls to list (default: all)")
	cmd.Flags().IntVar(&offset, "offset", 0, "calls to skip")
	bindChoice(cmd, &verb.State, "state", "only calls in this state: "+strings.Join(action.ApprovalStates(), ", "), action.ApprovalStates()...)
	return cmd
}

func (a *app) printApprovals(views []action.Approval) error {
	now := time.Now()
	l := listing[action.Approval]{
		items: views, name: func(v action.Approval) string { return v.ID }, empty: "no calls found", columns: []string{"ID", "STATE", "TOOL", "CALLER", "EXPIRES", "ARGS"},
		row: func(v action.Approval) []string {
			expires := left(v.Expires.Sub(now))
			if v.State == v1.ApprovalUsed {
				expires = ""
			}
			return []string{v.ID, v.State, v.Namespace + "/" + v.Tool, v.Principal, expires, clip.Words(cmp.Or(string(v.EditedArgs), string(v.Args)), 80)}
		},
	}
	if a.format() == "wide" {
		l.columns = []string{"ID", "STATE", "TOOL", "CALLER", "SESSION", "POLICY", "CREATED", "EXPIRES", "DECIDED BY", "REASON", "EDITED", "ARGS"}
		l.row = func(v action.Approval) []string {
			return []string{v.ID, v.State, v.Namespace + "/" + v.Tool, v.Principal, v.Session, v.Policy, clock(v.Created), clock(v.Expires), v.By, v.Reason, string(v.EditedArgs), string(v.Args)}
		}
	}
	return printList(a, l)
}

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// left formats the remaining time as one number.
func left(d time.Duration) string {
	switch {
	case d <= 0:
		return "-"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// completeApprovals completes the IDs of pending calls.
func (a *app) completeApprovals(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	views, _ := (&action.Approvals{Config: a.stored(cmd.Context()), State: v1.ApprovalPending}).Run(cmd.Context()) // without a store there are no completions
	var ids []string
	for _, v := range views {
		ids = append(ids, v.ID+"\t"+v.Tool+" "+clip.Words(string(v.Args), 60))
	}
	return withPrefix(prefix, ids), noFiles
}

// whoami returns the login name of the user.
func (a *app) whoami() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	name, _ := a.env("USER")
	return name
}
