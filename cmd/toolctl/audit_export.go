package main

import (
	"bufio"
	"encoding/csv"
	"errors"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/auditlog"
)

func newAuditExportCmd(a *app) *cobra.Command {
	o := &auditFlags{app: a}
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Export audit records as JSON lines or CSV",
		Long: `Write audit records to stdout, newest last, without a limit on their number.

jsonl writes one line of JSON per record: the record as it is stored, byte for byte, with
its id and hash prepended. 'toolctl policy simulate --audit FILE' reads this format. csv is
for spreadsheets: a text that a spreadsheet would run as a formula gets a leading apostrophe.`,
		Annotations: formats("jsonl", "csv"),
		Example: `  toolctl audit export > audit.jsonl
  toolctl audit export --since 24h -o csv > yesterday.csv`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.records(cmd.Context(), func(s store.Store, filter store.AuditFilter) (err error) {
				out := bufio.NewWriterSize(a.out, 64<<10)
				defer func() { err = errors.Join(err, out.Flush()) }() // even after an error
				if a.format() == "jsonl" {
					return s.EachAudit(cmd.Context(), filter, func(l store.AuditLine) error { return auditlog.WriteJSON(out, l) })
				}
				w := csv.NewWriter(out)
				defer w.Flush()
				if err := w.Write(auditlog.Columns); err != nil {
					return err
				}
				return s.EachAudit(cmd.Context(), filter, func(l store.AuditLine) error { return auditlog.WriteCSV(w, l) })
			})
		},
	}
	o.bind(cmd, "all")
	return cmd
}
