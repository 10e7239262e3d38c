package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/auditlog"
)

// auditLine is an audit record as -o json prints it.
type auditLine = auditlog.Line

// outcomeUnknown is the outcome of a call that is still running, or whose process has ended.
const outcomeUnknown = "unknown"

type auditListOptions struct {
	auditFlags
	all    bool
	follow bool
}

func newAuditListCmd(a *app) *cobra.Command {
	o := &auditListOptions{auditFlags: auditFlags{app: a}}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List audit records, newest last",
		Long: `List audit records, newest last, and the head of the chain, which is the hash of the
last record. If you keep the head elsewhere, 'toolctl audit verify --head' can later
detect that records were cut off.

For a call that has ended, the list has only the record of its outcome; --all also lists
the record written before the call ran. A call without an outcome is still running, or
its process ended first: it is listed as "started, outcome unknown".

The list has the newest 100 records unless you set --limit or --all. 'toolctl audit export'
writes all records to a file.

With --follow the command prints new records as they are written, until Ctrl-C; with
-o json it prints one object per line.`,
		Annotations: formats("table", "wide", "json", "yaml"),
		Example: `  toolctl audit list --limit 20
  toolctl audit list --tool 'pay*' --since 7d --status failed -o wide
  toolctl audit list --principal ann -o json
  toolctl audit list --follow --limit 10`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.records(cmd.Context(), func(s store.Store, filter store.AuditFilter) error {
				filter.Settled = !o.all
				usual := !o.all && !cmd.Flags().Changed("limit")
				switch {
				case o.follow && usual:
					filter.Limit = usualLines
				case usual:
					filter.Limit = usualLines + 1 // the additional record shows that there are more
				}
				if o.follow {
					return o.followLines(cmd.Context(), s, filter)
				}
				return o.list(cmd.Context(), s, filter, usual)
			})
		},
	}
	o.bind(cmd, fmt.Sprint(usualLines))
	cmd.Flags().BoolVar(&o.all, "all", false, "list every record, including the starts of calls that have ended; only --limit limits it")
	cmd.Flags().BoolVar(&o.follow, "follow", false, "print new records as they are written")
	return cmd
}

// usualLines is the number of records without --limit and --all.
const usualLines = 100

// list prints the records as it reads them, because there may be millions.
func (o *auditListOptions) list(ctx context.Context, s store.Store, filter store.AuditFilter, usual bool) (err error) {
	head, err := s.AuditHead(ctx)
	if err != nil {
		return err
	}
	open := map[int64]bool{} // records of calls whose outcome is unknown
	if !filter.Settled {
		alone := filter
		alone.Settled, alone.Status = true, v1.StatusStarted
		if err := s.EachAudit(ctx, alone, func(l store.AuditLine) error { open[l.ID] = true; return nil }); err != nil {
			return err
		}
	}
	p := &auditPrinter{o: o, w: bufio.NewWriterSize(o.out, 64<<10), head: head}
	defer func() { err = errors.Join(err, p.w.Flush()) }()
	print := func(l store.AuditLine) error {
		item, err := auditItem(l, filter.Settled || open[l.ID])
		if err != nil {
			return err
		}
		return p.item(&item)
	}
	var first []store.AuditLine // records of a list of the usual length
	err = s.EachAudit(ctx, filter, func(l store.AuditLine) error {
		if usual {
			first = append(first, l)
			return nil
		}
		return print(l)
	})
	more := len(first) > usualLines
	if more {
		first = first[1:]
	}
	for _, l := range first {
		if err == nil {
			err = print(l)
		}
	}
	if err != nil {
		return err
	}
	if more {
		fmt.Fprintf(o.err, "only the newest %d records are listed: list more with --limit 1000, all with --all, or fewer with --since 24h\n", usualLines)
	}
	return p.end()
}

// auditItem converts a record for the list. settled reports that the list has the start of a call only if the
// call has no outcome.
func auditItem(l store.AuditLine, settled bool) (auditLine, error) {
	rec, err := l.Record()
	item := auditLine{ID: l.ID, Hash: l.Hash, AuditRecord: rec}
	if settled && rec.Status == v1.StatusStarted {
		item.Outcome = outcomeUnknown
	}
	return item, err
}

func (o *auditListOptions) columns() []string {
	columns := []string{"LINE", "TIME", "PRINCIPAL", "SESSION", "TOOL", "DECISION", "STATUS", "ERROR", "DURATION"}
	if o.format() == "wide" {
		columns = append(columns, "POLICY", "CALL", "REASON", "ARGS")
	}
	return columns
}

func (o *auditListOptions) cells(l *auditLine) []string {
	d := v1.PolicyDecision{}
	if l.Policy != nil {
		d = *l.Policy
	}
	duration := ""
	if l.Change == nil && l.Gap == nil && l.Status != v1.StatusStarted {
		duration = clip.Milliseconds(l.DurationMS)
	}
	cells := []string{fmt.Sprint(l.ID), l.Time.UTC().Format(time.RFC3339), l.Principal, l.Session, auditTool(&l.AuditRecord), d.Decision, auditStatus(l), l.ErrorType, duration}
	if o.format() == "wide" {
		cells = append(cells, strings.TrimSpace(d.Policy+" "+d.Rule), l.CallID, clip.Words(auditReason(&l.AuditRecord), 80), clip.Words(auditArgs(&l.AuditRecord), 80))
	}
	return cells
}

// auditTool returns the tool or the changed object of a record. A call of an unknown tool has no namespace.
func auditTool(r *v1.AuditRecord) string {
	switch {
	case r.Change != nil && r.Status == v1.StatusChanged:
		return strings.Trim(strings.ToLower(r.Change.Kind)+"/"+strings.TrimPrefix(r.Namespace+"/", "/")+r.Change.Name, "/")
	case r.Namespace == "" || strings.Contains(r.Tool, "/"):
		return r.Tool
	}
	return r.Namespace + "/" + r.Tool
}

// auditReason returns the reason for the decision of a person.
func auditReason(r *v1.AuditRecord) string {
	if r.Approval == nil {
		return ""
	}
	return r.Approval.Reason
}

// auditStatus describes the outcome of a call and its decision, or the change.
func auditStatus(l *auditLine) string {
	switch {
	case l.Outcome != "":
		return l.Status + ", outcome " + l.Outcome
	case l.Gap != nil:
		return fmt.Sprintf("%s: %s could not be written", l.Status, count(int(l.Gap.Lines), "line"))
	case l.Change != nil && l.Status == v1.StatusChanged && !l.Change.Before.IsZero():
		return fmt.Sprintf("%s by %s, begins with line %d", l.Change.Action, l.Change.Command, l.Change.To)
	case l.Change != nil && l.Status == v1.StatusChanged && l.Change.TakenFrom != "":
		return fmt.Sprintf("%s by %s from set %s, %s", l.Change.Action, l.Change.Command, l.Change.TakenFrom, auditVersions(l.Change))
	case l.Change != nil && l.Status == v1.StatusChanged:
		return fmt.Sprintf("%s by %s, %s", l.Change.Action, l.Change.Command, auditVersions(l.Change))
	case l.Approval != nil && l.Approval.By != "" && l.Approval.Decision == l.Status:
		return l.Status + " by " + l.Approval.By
	case l.Approval != nil && l.Approval.By != "":
		return l.Status + ", " + l.Approval.Decision + " by " + l.Approval.By
	}
	return l.Status
}

func auditVersions(c *v1.AuditChange) string {
	text := fmt.Sprintf("version %d to %d", c.From, c.To)
	if c.Commit != "" {
		text += ", commit " + shortCommit(c.Commit)
	}
	return text
}

// auditArgs returns the arguments of a call, or the reason for a gap.
func auditArgs(r *v1.AuditRecord) string {
	switch {
	case r.Gap != nil:
		return r.Gap.Reason
	case r.Args == nil:
		return r.ArgsStart
	}
	return string(r.Args)
}

// followLines prints new records until ctx ends.
func (o *auditListOptions) followLines(ctx context.Context, s store.Store, filter store.AuditFilter) error {
	o.lasting = true
	table := newTable(o.out, o.columns()...)
	err := s.FollowAudit(ctx, filter, func(lines []store.AuditLine) error {
		for _, l := range lines {
			item, err := auditItem(l, filter.Settled)
			if err == nil {
				err = o.printLine(table, &item)
			}
			if err != nil {
				return err
			}
		}
		if o.format() == "table" || o.format() == "wide" {
			return table.Flush()
		}
		return nil
	})
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil // Ctrl-C ends the command
	}
	return err
}

func (o *auditListOptions) printLine(t *table, l *auditLine) error {
	switch o.format() {
	case "json":
		return printLineJSON(o.out, l)
	case "yaml":
		if _, err := io.WriteString(o.out, "---\n"); err != nil {
			return err
		}
		return printYAML(o.out, l)
	}
	t.row(o.cells(l)...)
	return nil
}

// printLineJSON prints a value as one line of JSON.
func printLineJSON(w io.Writer, v any) error {
	text, err := jsontext.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}
