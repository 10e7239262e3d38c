package main

import (
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

// auditLine is a line as -o json prints it.
type auditLine = auditlog.Line

// outcomeUnknown is the outcome of a call that runs, or whose process ended before it did.
const outcomeUnknown = "unknown"

// auditList is what 'audit list -o json' prints.
type auditList struct {
	Items []auditLine `json:"items"`
	// Lines is how many lines were ever written, and Head the hash of the last one.
	Lines int64  `json:"lines"`
	Head  string `json:"head"`
}

type auditListOptions struct {
	auditFlags
	all    bool
	follow bool
}

func newAuditListCmd(a *app) *cobra.Command {
	o := &auditListOptions{auditFlags: auditFlags{app: a}}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List lines of the audit, the newest last",
		Long: `List lines of the audit, the newest last, and the head of the chain: the hash of
its last line. Noted elsewhere, it lets 'toolctl audit verify --head' find out later
whether lines were cut off.

Of a call that has ended only the line with its outcome is listed, and with --all also
the one that was written before it ran. A call without an outcome is running, or its
process ended before the call did: it is listed as "started, outcome unknown".

With --follow it goes on with lines as they are written, until Ctrl-C; -o json prints an
object on each line then.

Output formats (-o): table, wide, json, yaml.`,
		Annotations: formats("table", "wide", "json", "yaml"),
		Example: `  toolctl audit list --limit 20
  toolctl audit list --tool 'pay*' --since 7d --status failed -o wide
  toolctl audit list --principal ann -o json
  toolctl audit list --follow --limit 10`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := o.filter(time.Now())
			if err != nil {
				return err
			}
			filter.Settled = !o.all
			s, err := a.openAudit(cmd.Context())
			if err != nil {
				return err
			}
			defer a.closing(s)
			if s, err = a.withLabels(cmd.Context(), s); err != nil {
				return err
			}
			if o.follow {
				return o.followLines(cmd.Context(), s, filter)
			}
			list, err := auditLines(cmd.Context(), s, filter)
			if err != nil {
				return err
			}
			if done, err := a.encoded(o.format(), list); done {
				return err
			}
			return o.print(list)
		},
	}
	o.bind(cmd)
	cmd.Flags().BoolVar(&o.all, "all", false, "list the intents of calls that have ended too")
	cmd.Flags().BoolVar(&o.follow, "follow", false, "go on with lines as they are written")
	return cmd
}

// auditLines reads the lines that a filter chooses.
func auditLines(ctx context.Context, s store.Store, filter store.AuditFilter) (auditList, error) {
	head, err := s.AuditHead(ctx)
	if err != nil {
		return auditList{}, err
	}
	list := auditList{Items: []auditLine{}, Lines: head.Lines, Head: head.Hash}
	open := map[int64]bool{} // lines of calls whose outcome is unknown
	if !filter.Settled {
		alone := filter
		alone.Settled, alone.Status = true, v1.StatusStarted
		if err := s.EachAudit(ctx, alone, func(l store.AuditLine) error { open[l.ID] = true; return nil }); err != nil {
			return list, err
		}
	}
	err = s.EachAudit(ctx, filter, func(l store.AuditLine) error {
		item, err := auditItem(l, filter.Settled || open[l.ID])
		list.Items = append(list.Items, item)
		return err
	})
	return list, err
}

// auditItem is a line as it is listed. settled says that the line of a call's beginning
// is listed only when the call has no outcome.
func auditItem(l store.AuditLine, settled bool) (auditLine, error) {
	rec, err := l.Record()
	item := auditLine{ID: l.ID, Hash: l.Hash, AuditRecord: rec}
	if settled && rec.Status == v1.StatusStarted {
		item.Outcome = outcomeUnknown
	}
	return item, err
}

func (o *auditListOptions) print(list auditList) error {
	if len(list.Items) > 0 {
		t := newTable(o.out, o.columns()...)
		for i := range list.Items {
			t.row(o.cells(&list.Items[i])...)
		}
		if err := t.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(o.out)
	}
	_, err := fmt.Fprintf(o.out, "%d of %s, head %s\n", len(list.Items), count(int(list.Lines), "line"), list.Head)
	return err
}

func (o *auditListOptions) columns() []string {
	columns := []string{"LINE", "TIME", "PRINCIPAL", "SESSION", "TOOL", "DECISION", "STATUS", "ERROR", "DURATION"}
	if o.format() == "wide" {
		columns = append(columns, "POLICY", "CALL", "ARGS")
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
		duration = fmt.Sprintf("%gms", l.DurationMS)
	}
	cells := []string{fmt.Sprint(l.ID), l.Time.UTC().Format(time.RFC3339), l.Principal, l.Session, auditTool(&l.AuditRecord), d.Decision, auditStatus(l), l.ErrorType, duration}
	if o.format() == "wide" {
		cells = append(cells, strings.TrimSpace(d.Policy+" "+d.Rule), l.CallID, clip.Words(auditArgs(&l.AuditRecord), 80))
	}
	return cells
}

// auditTool is what a line is about: a tool, or the object that was changed. A call of a
// tool that is not there has no namespace.
func auditTool(r *v1.AuditRecord) string {
	switch {
	case r.Change != nil && r.Status == v1.StatusChanged:
		return strings.Trim(strings.ToLower(r.Change.Kind)+"/"+strings.TrimPrefix(r.Namespace+"/", "/")+r.Change.Name, "/")
	case r.Namespace == "" || strings.Contains(r.Tool, "/"):
		return r.Tool
	}
	return r.Namespace + "/" + r.Tool
}

// auditStatus says how a call ended, or what was changed.
func auditStatus(l *auditLine) string {
	switch {
	case l.Outcome != "":
		return l.Status + ", outcome " + l.Outcome
	case l.Gap != nil:
		return fmt.Sprintf("%s: %s could not be written", l.Status, count(int(l.Gap.Lines), "line"))
	case l.Change != nil && l.Status == v1.StatusChanged && !l.Change.Before.IsZero():
		return fmt.Sprintf("%s by %s, begins with line %d", l.Change.Action, l.Change.Command, l.Change.To)
	case l.Change != nil && l.Status == v1.StatusChanged && l.Change.TakenFrom != "":
		return fmt.Sprintf("%s by %s from set %s, revision %d to %d", l.Change.Action, l.Change.Command, l.Change.TakenFrom, l.Change.From, l.Change.To)
	case l.Change != nil && l.Status == v1.StatusChanged:
		return fmt.Sprintf("%s by %s, revision %d to %d", l.Change.Action, l.Change.Command, l.Change.From, l.Change.To)
	}
	return l.Status
}

// auditArgs are the arguments of a call, or why there is a gap.
func auditArgs(r *v1.AuditRecord) string {
	switch {
	case r.Gap != nil:
		return r.Gap.Reason
	case r.Args == nil:
		return r.ArgsStart
	}
	return string(r.Args)
}

// followLines prints lines as they are written, until ctx ends.
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
		return nil // Ctrl-C is how it ends
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
