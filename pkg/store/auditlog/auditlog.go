// Package auditlog has the audit of a store in other forms: as lines of JSON, which [Read] reads
// again, as CSV, and as heads that are noted outside of the store.
//
//	err := st.EachAudit(ctx, store.AuditFilter{}, func(l store.AuditLine) error {
//		return auditlog.WriteJSON(os.Stdout, l)
//	})
package auditlog

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

// Line is a record of the audit with its place in the chain.
type Line struct {
	// ID numbers the records of a store from 1.
	ID int64 `json:"id,omitempty"`
	// Hash is the hash of the record in the chain; empty for a record that is older than the chain.
	Hash string `json:"hash,omitempty"`
	v1.AuditRecord
	// Outcome is "unknown" for a call that was started and has no outcome.
	Outcome string `json:"outcome,omitempty"`
}

// Read reads a sequence of JSON records: the output of [WriteJSON], or records alone. It omits records before since,
// unless since is zero. The error says which record cannot be read.
func Read(in io.Reader, since time.Time) ([]v1.AuditRecord, error) {
	var records []v1.AuditRecord
	dec := json.NewDecoder(in)
	dec.DisallowUnknownFields()
	for n := 1; ; n++ {
		var line Line
		err := dec.Decode(&line)
		if errors.Is(err, io.EOF) {
			return records, nil
		}
		if err != nil {
			return nil, fmt.Errorf("record %d: expected an audit record: %w", n, err)
		}
		if !line.Time.Before(since) {
			records = append(records, line.AuditRecord)
		}
	}
}

// WriteJSON writes a record as JSON with its id and hash. The record after them is written byte for byte as it is
// stored, so that others can check the chain: see docs/observability.md. It returns an error for a record that is not
// JSON, and the errors of w.
func WriteJSON(w io.Writer, l store.AuditLine) error {
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

// Columns are the column names for [WriteCSV].
var Columns = []string{"id", "time", "call_id", "principal", "session", "turn", "namespace", "tool", "decision", "policy", "rule", "status", "error_type",
	"duration_ms", "args_hash", "args", "hash", "approval", "approval_by", "approval_reason"}

// WriteCSV writes a record as a table row for spreadsheets. A text that looks like a formula gets a leading apostrophe.
func WriteCSV(w *csv.Writer, l store.AuditLine) error {
	r, err := l.Record()
	if err != nil {
		return err
	}
	var d v1.PolicyDecision
	if r.Policy != nil {
		d = *r.Policy
	}
	var by v1.ApprovalRecord
	if r.Approval != nil {
		by = *r.Approval
	}
	cells := []string{fmt.Sprint(l.ID), r.Time.UTC().Format(time.RFC3339Nano), r.CallID, r.Principal, r.Session, r.Turn, r.Namespace, r.Tool, d.Decision, d.Policy, d.Rule,
		r.Status, r.ErrorType, fmt.Sprint(r.DurationMS), r.ArgsHash, string(r.Args), l.Hash, by.Decision, by.By, by.Reason}
	for i, c := range cells {
		cells[i] = plainCell(c)
	}
	return w.Write(cells)
}

// plainCell prevents spreadsheets from evaluating foreign text as a formula
// (https://owasp.org/www-community/attacks/CSV_Injection).
func plainCell(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r\n", rune(s[0])) {
		return "'" + s
	}
	return s
}
