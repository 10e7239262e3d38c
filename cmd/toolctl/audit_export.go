package main

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

func newAuditExportCmd(a *app) *cobra.Command {
	o := &auditFlags{app: a}
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write lines of the audit as JSON lines or CSV",
		Long: `Write lines of the audit to stdout, the newest last, however many there are.

jsonl writes a line of JSON for each: the record as it is stored, byte for byte, with
its id and hash put in front. 'toolctl policy simulate --audit FILE' reads it. csv is
for spreadsheets: a text that one would take for a formula gets an apostrophe in front.

Output formats (-o): jsonl, csv.`,
		Annotations: formats("jsonl", "csv"),
		Example: `  toolctl audit export > audit.jsonl
  toolctl audit export --since 24h -o csv > yesterday.csv`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			format := a.format()
			filter, err := o.filter(time.Now())
			if err != nil {
				return err
			}
			s, err := a.openAudit(cmd.Context())
			if err != nil {
				return err
			}
			defer a.closing(s)
			out := bufio.NewWriterSize(a.out, 64<<10)
			if format == "csv" {
				w := csv.NewWriter(out)
				err = w.Write(auditColumns)
				if err == nil {
					err = s.EachAudit(cmd.Context(), filter, func(l store.AuditLine) error { return writeAuditCSV(w, l) })
				}
				w.Flush()
			} else {
				err = s.EachAudit(cmd.Context(), filter, func(l store.AuditLine) error { return writeAuditJSON(out, l) })
			}
			// What was read before a violation is written all the same.
			if ferr := out.Flush(); err == nil {
				err = ferr
			}
			return err
		},
	}
	o.bind(cmd)
	return cmd
}

// writeAuditJSON writes a line with its id and hash. The record after them is as it is
// stored, so that others can check the chain: see docs/observability.md.
func writeAuditJSON(w io.Writer, l store.AuditLine) error {
	if len(l.Text) < 3 || !json.Valid(l.Text) || l.Text[0] != '{' {
		_, err := l.Record()
		if err == nil {
			err = fmt.Errorf("audit: line %d is not a JSON object", l.ID)
		}
		return err
	}
	head, err := json.Marshal(struct {
		ID   int64  `json:"id"`
		Hash string `json:"hash,omitempty"`
	}{l.ID, l.Hash})
	if err != nil {
		return err
	}
	head[len(head)-1] = ','
	for _, part := range [][]byte{head, l.Text[1:], {'\n'}} {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

var auditColumns = []string{"id", "time", "call_id", "principal", "session", "turn", "namespace", "tool", "decision", "policy", "rule", "status", "error_type",
	"duration_ms", "args_hash", "args", "hash"}

func writeAuditCSV(w *csv.Writer, l store.AuditLine) error {
	r, err := l.Record()
	if err != nil {
		return err
	}
	var d v1.PolicyDecision
	if r.Policy != nil {
		d = *r.Policy
	}
	cells := []string{fmt.Sprint(l.ID), r.Time.UTC().Format(time.RFC3339Nano), r.CallID, r.Principal, r.Session, r.Turn, r.Namespace, r.Tool, d.Decision, d.Policy, d.Rule,
		r.Status, r.ErrorType, fmt.Sprint(r.DurationMS), r.ArgsHash, string(r.Args), l.Hash}
	for i, c := range cells {
		cells[i] = plainCell(c)
	}
	return w.Write(cells)
}

// plainCell keeps spreadsheets from taking foreign text for a formula
// (https://owasp.org/www-community/attacks/CSV_Injection).
func plainCell(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r\n", rune(s[0])) {
		return "'" + s
	}
	return s
}
