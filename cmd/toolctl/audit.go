package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
	cmd.Flags().Var(&auditMode{&a.conf.Gateway.AuditBestEffort}, "audit", `if the audit log cannot be written, "required" refuses calls and "best-effort" allows them`)
	_ = cmd.RegisterFlagCompletionFunc("audit", cobra.FixedCompletions([]string{auditRequired, auditBestEffort}, noFiles))
}

// auditMode is the value of --audit.
type auditMode struct{ bestEffort *bool }

var _ pflag.Value = (*auditMode)(nil)

func (m *auditMode) String() string {
	if m.bestEffort != nil && *m.bestEffort {
		return auditBestEffort
	}
	return auditRequired
}

func (*auditMode) Type() string { return "string" }

func (m *auditMode) Set(text string) error {
	if text != auditRequired && text != auditBestEffort {
		return fmt.Errorf("expected %s or %s", auditRequired, auditBestEffort)
	}
	*m.bestEffort = text == auditBestEffort
	return nil
}

// auditFlags choose lines of the audit.
type auditFlags struct {
	*app
	since     string
	tool      string
	principal string
	session   string
	status    string
	decision  string
	limit     int
}

// auditStatuses are what the status of a line may be.
var auditStatuses = []string{v1.StatusComplete, v1.StatusFailed, v1.StatusPending, "approved", "denied", v1.StatusStarted, v1.StatusChanged, v1.StatusGap}

// bind binds the flags; usually says how many lines there are without --limit.
func (o *auditFlags) bind(cmd *cobra.Command, usually string) {
	f := cmd.Flags()
	f.StringVar(&o.since, "since", "", "only records from this time on: "+timeForms)
	f.StringVar(&o.tool, "tool", "", "only records of this tool, or of changes to this object, such as toolpolicy/careful; * matches any characters and ? matches one")
	f.StringVar(&o.principal, "principal", "", "only records of this principal, or of principals that match a pattern such as team-*")
	f.StringVar(&o.session, "session", "", "only calls of this session, or of sessions that match a pattern")
	_ = cmd.RegisterFlagCompletionFunc("session", o.fromStore(inOrder, sessions))
	f.StringVar(&o.status, "status", "", "only records with this status: "+strings.Join(auditStatuses, ", "))
	f.StringVar(&o.decision, "decision", "", "only calls with this policy decision: "+strings.Join(action.AuditDecisions(), ", ")+" (refused: by a policy or a person)")
	_ = cmd.RegisterFlagCompletionFunc("decision", cobra.FixedCompletions(action.AuditDecisions(), noFiles))
	o.bindSelector(f, "records about objects of the store")
	f.IntVar(&o.limit, "limit", 0, "maximum number of records, newest first; 0 means all (default: "+usually+")")
	_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(auditStatuses, noFiles))
	_ = cmd.RegisterFlagCompletionFunc("tool", o.completeTools)
}

// filter reads the flags.
func (o *auditFlags) filter(now time.Time) (store.AuditFilter, error) {
	since, err := parseTime("--since", o.since, now)
	if err != nil {
		return store.AuditFilter{}, err
	}
	if o.status != "" && !slices.Contains(auditStatuses, o.status) {
		return store.AuditFilter{}, usagef("--status %q: expected one of %s%s", o.status, strings.Join(auditStatuses, ", "), v1.DidYouMean(o.status, auditStatuses))
	}
	if known := action.AuditDecisions(); o.decision != "" && !slices.Contains(known, o.decision) {
		return store.AuditFilter{}, usagef("--decision %q: expected one of %s%s", o.decision, strings.Join(known, ", "), v1.DidYouMean(o.decision, known))
	}
	if o.limit < 0 {
		return store.AuditFilter{}, usagef("--limit %d: expected 0 or more", o.limit)
	}
	f := store.AuditFilter{Since: since, Namespace: o.conf.Namespace, Tool: o.tool, Principal: o.principal, Session: o.session, Status: o.status, Limit: o.limit}
	if kind, name, ok := o.object(); ok {
		f.Tool = "" // the lines of changes of tools alone have it
		if ns, _, ok := strings.Cut(name, "/"); ok {
			f.Namespace = ns
		}
	} else if name != "" {
		f.Namespace, f.Tool = kind, name
	}
	return f, nil
}

// object reads --tool as an object, as the column TOOL shows one that was changed: KIND/NAME or
// KIND/NAMESPACE/NAME. Else it is NAMESPACE/NAME, or a name alone.
func (o *auditFlags) object() (kind, name string, ok bool) {
	kind, name, _ = strings.Cut(o.tool, "/")
	return kind, name, name != "" && slices.ContainsFunc(v1.Kinds(), func(k string) bool { return strings.EqualFold(k, kind) })
}

// openAudit opens the store whose audit has the chosen lines alone.
func (o *auditFlags) openAudit(ctx context.Context) (store.Store, error) {
	verb := &action.Audit{Config: o.stored(ctx), Decision: o.decision, Selector: o.selector}
	if kind, name, ok := o.object(); ok {
		verb.Kind, verb.Name = kind, name[strings.Index(name, "/")+1:]
	}
	return verb.Open(ctx)
}
