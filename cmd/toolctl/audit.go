package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

func newAuditCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Look at the audit, check it, export it",
		Long: `Look at the audit of the store, which has a line for each call: who called
what, what the policies decided, the arguments with secrets masked and the hash of
those that were called, how it ended and how long it took.

The lines are a chain: each has the SHA-256 of the hash before it and of itself.`,
		Example: `  toolctl audit list --since 24h --status failed
  toolctl audit verify
  toolctl audit export --since 2026-11-01 > november.jsonl`,
		Args: noSubcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newAuditListCmd(a), newAuditVerifyCmd(a), newAuditExportCmd(a))
	return cmd
}

// auditFlags choose lines of the audit.
type auditFlags struct {
	*app
	since     string
	tool      string
	principal string
	session   string
	status    string
	limit     int
}

// auditStatuses are what the status of a line may be.
var auditStatuses = []string{v1.StatusComplete, v1.StatusFailed, v1.StatusPending, "approved", "denied"}

func (o *auditFlags) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.since, "since", "", "only lines of that time and later: a time ago such as 24h, a day, or a time such as 2026-11-21T07:00:00Z")
	f.StringVar(&o.tool, "tool", "", "only calls of this tool")
	f.StringVar(&o.principal, "principal", "", "only calls by this principal")
	f.StringVar(&o.session, "session", "", "only calls of this session")
	_ = cmd.RegisterFlagCompletionFunc("session", o.completeSessions)
	f.StringVar(&o.status, "status", "", "only calls that ended so: "+strings.Join(auditStatuses, ", "))
	f.IntVar(&o.limit, "limit", 0, "only the newest lines, so many (default: all)")
	_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(auditStatuses, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("tool", o.completeTools)
}

// filter reads the flags.
func (o *auditFlags) filter(now time.Time) (store.AuditFilter, error) {
	since, err := parseSince(o.since, now)
	if err != nil {
		return store.AuditFilter{}, err
	}
	if o.status != "" && !slices.Contains(auditStatuses, o.status) {
		msg := fmt.Sprintf("--status %q: expected one of %s", o.status, strings.Join(auditStatuses, ", "))
		if near := v1.Nearest(o.status, auditStatuses); near != "" {
			msg += fmt.Sprintf("; did you mean %q?", near)
		}
		return store.AuditFilter{}, usagef("%s", msg)
	}
	if o.limit < 0 {
		return store.AuditFilter{}, usagef("--limit %d: expected 0 or more", o.limit)
	}
	f := store.AuditFilter{Since: since, Namespace: o.namespace, Tool: o.tool, Principal: o.principal, Session: o.session, Status: o.status, Limit: o.limit}
	if ns, name, ok := strings.Cut(o.tool, "/"); ok {
		f.Namespace, f.Tool = ns, name
	}
	return f, nil
}

// parseSince reads a time ago, a day in UTC, or a time.
func parseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usagef("--since %q: expected a time ago such as 24h or 30m, a day such as 2026-11-21, or a time such as 2026-11-21T07:00:00Z", text)
}

// openAudit opens the store whose audit is asked for.
func (a *app) openAudit(ctx context.Context) (*store.Store, error) {
	if len(a.files) > 0 {
		return nil, usagef("the audit is in the store, not in files: leave out -f, and name the store with --store where it is not the usual one")
	}
	return a.openStore(ctx, false)
}

// auditLine is a line as -o json prints it.
type auditLine struct {
	// ID numbers the lines of a store from 1.
	ID int64 `json:"id,omitempty"`
	// Hash is the line's link of the chain; empty for a line that is older than it.
	Hash string `json:"hash,omitempty"`
	v1.AuditRecord
}

// auditList is what 'audit list -o json' prints.
type auditList struct {
	Items []auditLine `json:"items"`
	// Lines is how many lines were ever written, and Head the hash of the last one.
	Lines int64  `json:"lines"`
	Head  string `json:"head"`
}

func newAuditListCmd(a *app) *cobra.Command {
	o := &auditFlags{app: a}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List lines of the audit, the newest last",
		Long: `List lines of the audit, the newest last, and the head of the chain: the hash of
its last line. Noted elsewhere, it lets 'toolctl audit verify --head' find out later
whether lines were cut off.

Output formats (-o): table, wide, json, yaml.`,
		Annotations: formats("table", "wide", "json", "yaml"),
		Example: `  toolctl audit list --limit 20
  toolctl audit list --tool pay-invoice --since 24h --status failed -o wide
  toolctl audit list --principal ann -o json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			format := a.format()
			filter, err := o.filter(time.Now())
			if err != nil {
				return err
			}
			list, err := o.list(cmd.Context(), filter)
			if err != nil {
				return err
			}
			switch format {
			case "json":
				return printJSON(a.out, list)
			case "yaml":
				return printYAML(a.out, list)
			}
			return a.printAudit(list, format == "wide")
		},
	}
	o.bind(cmd)
	return cmd
}

func (o *auditFlags) list(ctx context.Context, filter store.AuditFilter) (auditList, error) {
	s, err := o.openAudit(ctx)
	if err != nil {
		return auditList{}, err
	}
	defer o.closing(s)
	head, err := s.AuditHead(ctx)
	if err != nil {
		return auditList{}, err
	}
	list := auditList{Items: []auditLine{}, Lines: head.Lines, Head: head.Hash}
	err = s.EachAudit(ctx, filter, func(l store.AuditLine) error {
		rec, err := l.Record()
		list.Items = append(list.Items, auditLine{ID: l.ID, Hash: l.Hash, AuditRecord: rec})
		return err
	})
	return list, err
}

func (a *app) printAudit(list auditList, wide bool) error {
	if len(list.Items) > 0 {
		columns := []string{"LINE", "TIME", "PRINCIPAL", "SESSION", "TOOL", "DECISION", "STATUS", "ERROR", "DURATION"}
		if wide {
			columns = append(columns, "POLICY", "CALL", "ARGS")
		}
		t := newTable(a.out, columns...)
		for _, l := range list.Items {
			d := v1.PolicyDecision{}
			if l.Policy != nil {
				d = *l.Policy
			}
			cells := []string{fmt.Sprint(l.ID), l.Time.UTC().Format(time.RFC3339), l.Principal, l.Session, auditTool(l.AuditRecord), d.Decision, l.Status, l.ErrorType,
				fmt.Sprintf("%gms", l.DurationMS)}
			if wide {
				cells = append(cells, strings.TrimSpace(d.Policy+" "+d.Rule), l.CallID, shorten(string(l.Args), 80))
			}
			t.row(cells...)
		}
		if err := t.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(a.out)
	}
	_, err := fmt.Fprintf(a.out, "%d of %s, head %s\n", len(list.Items), count(int(list.Lines), "line"), list.Head)
	return err
}

// auditTool is the tool of a line; a call of a tool that is not there has no namespace.
func auditTool(r v1.AuditRecord) string {
	if r.Namespace == "" || strings.Contains(r.Tool, "/") {
		return r.Tool
	}
	return r.Namespace + "/" + r.Tool
}
