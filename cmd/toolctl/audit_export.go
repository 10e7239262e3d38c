package main

import (
	"bufio"
	"encoding/csv"
	"time"

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
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			format := a.format()
			filter, err := o.filter(time.Now())
			if err != nil {
				return err
			}
			s, err := o.openAudit(cmd.Context())
			if err != nil {
				return err
			}
			defer a.closing(s)
			out := bufio.NewWriterSize(a.out, 64<<10)
			if format == "csv" {
				w := csv.NewWriter(out)
				err = w.Write(auditlog.Columns)
				if err == nil {
					err = s.EachAudit(cmd.Context(), filter, func(l store.AuditLine) error { return auditlog.WriteCSV(w, l) })
				}
				w.Flush()
			} else {
				err = s.EachAudit(cmd.Context(), filter, func(l store.AuditLine) error { return auditlog.WriteJSON(out, l) })
			}
			// What was read before a violation is written all the same.
			if ferr := out.Flush(); err == nil {
				err = ferr
			}
			return err
		},
	}
	o.bind(cmd, "all")
	return cmd
}
