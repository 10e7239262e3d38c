package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/store"
)

func newAuditCmd(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "audit",
		Short: "List, verify, anchor, export and prune the audit log",
		Long: `Work with the audit log of the store. It has one record before each call and one after:
who called which tool, what the policies decided, the arguments with secrets masked, a hash
of the real arguments, the outcome and the duration. It also has a record for each
change of the store: who changed which object, from which revision to which.

The records form a hash chain: the hash of each record covers the hash before it.`,
		Example: `  toolctl audit list --since 24h --status failed
  toolctl audit list --follow
  toolctl audit verify
  toolctl audit export --since 2026-11-01 > november.jsonl
  toolctl audit prune --before 90d`,
	}, newAuditListCmd(a), newAuditVerifyCmd(a), newAuditExportCmd(a), newAuditAnchorCmd(a), newAuditPruneCmd(a))
}

// Values of --audit of the commands that call tools.
const (
	auditRequired   = "required"
	auditBestEffort = "best-effort"
)

// bindAudit binds the flag --audit of a command that calls tools.
func (a *app) bindAudit(cmd *cobra.Command) {
	a.audit = auditRequired
	bindChoice(cmd, &a.audit, "audit", `if the audit log cannot be written, "required" refuses calls and "best-effort" allows them`, auditRequired, auditBestEffort)
}

// auditFlags select records of the audit log.
type auditFlags struct {
	*app
	action.Audit
	since string
}

// auditStatuses are the values of --status.
var auditStatuses = []string{v1.StatusComplete, v1.StatusFailed, v1.StatusPending, "approved", "denied", v1.StatusStarted, v1.StatusChanged, v1.StatusGap}

// bind binds the flags; usually is the number of records without --limit.
func (o *auditFlags) bind(cmd *cobra.Command, usually string) {
	f, filter := cmd.Flags(), &o.Filter
	f.StringVar(&o.since, "since", "", "only records from this time on: "+timeForms)
	f.StringVar(&filter.Tool, "tool", "", "only records of this tool, or of changes to this object, such as toolpolicy/careful; * matches any characters and ? matches one")
	f.StringVar(&filter.Principal, "principal", "", "only records of this principal, or of principals that match a pattern such as team-*")
	f.StringVar(&filter.Session, "session", "", "only calls of this session, or of sessions that match a pattern")
	_ = cmd.RegisterFlagCompletionFunc("session", o.fromStore(inOrder, sessions))
	bindChoice(cmd, &filter.Status, "status", "only records with this status: "+strings.Join(auditStatuses, ", "), auditStatuses...)
	bindChoice(cmd, &o.Decision, "decision", "only calls with this policy decision: "+strings.Join(action.AuditDecisions(), ", ")+" (refused: by a policy or a person)", action.AuditDecisions()...)
	bindSelector(f, &o.Selector, "records about objects of the store")
	f.IntVar(&filter.Limit, "limit", 0, "maximum number of records, newest first; 0 means all (default: "+usually+")")
	_ = cmd.RegisterFlagCompletionFunc("tool", o.completeTools)
}

// records opens the store for do, with the filter of the flags.
func (o *auditFlags) records(ctx context.Context, do func(store.Store, store.AuditFilter) error) (err error) {
	if o.Filter.Since, err = parseTime("--since", o.since, time.Now()); err != nil {
		return err
	}
	if o.Filter.Limit < 0 {
		return usagef("--limit %d: expected 0 or more", o.Filter.Limit)
	}
	o.Config = o.stored(ctx)
	return o.Run(ctx, do)
}
