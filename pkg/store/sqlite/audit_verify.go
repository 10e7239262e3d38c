package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

// AuditHead returns the end of the chain as it is stored, unchecked.
func (s *Store) AuditHead(ctx context.Context) (head store.AuditHead, err error) {
	err = s.read(ctx, func(c *sql.Conn) error {
		hash, err := auditHead(ctx, c)
		if err != nil {
			return err
		}
		head.Hash = hash.String()
		head.Lines, err = auditWritten(ctx, c)
		return err
	})
	return head, err
}

// auditWritten is the ID that was given out last; SQLite keeps it when lines are deleted
// (sqlite.org/autoinc.html).
func auditWritten(ctx context.Context, c *sql.Conn) (n int64, err error) {
	err = c.QueryRowContext(ctx, "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'audit'), 0)").Scan(&n)
	return n, err
}

// VerifyAudit checks the chain of the audit: that no line was changed, removed, added
// or moved. The hash of each line is the SHA-256 of the hash before it, 32 zero bytes
// for the first, and the line's JSON as it is stored. Of an audit that was pruned it
// checks what is left, and that a line says so.
//
// The chain has no secret: who can write the store can cut its end off, or make the
// whole of it anew. Against that, head is the hash of a line, noted earlier, that must
// still be there; "" asks for none. It must be 64 hexadecimal digits.
func (s *Store) VerifyAudit(ctx context.Context, head string) (store.AuditCheck, error) {
	v := auditVerifier{want: strings.ToLower(head), open: map[string][]int64{}}
	if err := v.checkHead(); err != nil {
		return store.AuditCheck{}, err
	}
	var last int64
	var start []byte
	var open map[string][]int64
	err := s.read(ctx, func(c *sql.Conn) (err error) {
		if v.written, err = auditWritten(ctx, c); err != nil {
			return err
		}
		err = c.QueryRowContext(ctx, `SELECT coalesce(max(id), 0), coalesce((SELECT before FROM audit_start), 0), coalesce((SELECT pruned FROM audit_start), 0),
			(SELECT hash FROM audit_start) FROM audit`).Scan(&last, &v.before, &v.pruned, &start)
		if err != nil {
			return err
		}
		open, err = openIntents(ctx, c)
		return err
	})
	copy(v.head[:], start)
	v.lastID = v.pruned
	v.found()
	// IDs that nobody gave out may be below 1.
	for after := int64(-1 << 63); err == nil && v.violation == nil; {
		var page []auditRow
		if page, err = s.auditPage(ctx, "true", nil, after, last); err != nil || len(page) == 0 {
			break
		}
		for i := range page {
			if v.violation = v.check(&page[i]); v.violation != nil {
				break
			}
			after = page[i].id
		}
	}
	if err != nil {
		return store.AuditCheck{}, err
	}
	v.end(open)
	return store.AuditCheck{Lines: v.lines, Unchained: v.unchained, Pruned: v.pruned, Head: v.head.String(), Broken: v.violation}, nil
}

// auditVerifier follows the chain from line to line.
type auditVerifier struct {
	want    string // a hash that must turn up
	written int64
	before  int64 // the last line that is older than the chain
	pruned  int64 // the last line that was pruned

	said             bool               // a line says what was pruned
	open             map[string][]int64 // by call: lines of intent without an outcome
	head             auditHash
	lastID           int64 // of the last line, 0 before the first
	lines, unchained int64
	violation        *store.AuditBreak
}

func (v *auditVerifier) checkHead() error {
	if v.want == "" {
		return nil
	}
	if len(v.want) != 2*len(v.head) || strings.Trim(v.want, "0123456789abcdef") != "" {
		return fmt.Errorf("audit: head %q: expected the %d hexadecimal digits of a line's hash", v.want, 2*len(v.head))
	}
	v.found()
	return nil
}

// found notes when the hash that must turn up has.
func (v *auditVerifier) found() {
	if v.want == v.head.String() {
		v.want = ""
	}
}

func (v *auditVerifier) check(r *auditRow) *store.AuditBreak {
	if r.hash == nil && v.lines == 0 && r.id <= v.before {
		v.unchained++
		v.lastID = r.id
		return nil
	}
	record, err := store.AuditLine{ID: r.id, Text: r.text}.Record()
	violation := func(format string, args ...any) *store.AuditBreak {
		return &store.AuditBreak{Line: r.id, CallID: record.CallID, Time: record.Time, Message: fmt.Sprintf(format, args...)}
	}
	next := nextHash(v.head, r.text)
	switch {
	case v.lines > 0 && r.id != v.lastID+1:
		return &store.AuditBreak{Line: v.lastID + 1, Message: missing(v.lastID+1, r.id-1)}
	case r.hash == nil:
		return violation("it has no hash: it was added, or its hash was taken away")
	case !bytes.Equal(next[:], r.hash):
		return violation("its hash does not fit: it was changed, or a line before it was removed or moved")
	case err != nil:
		return violation("it is not a record: %v", errors.Unwrap(err))
	}
	for _, c := range []struct{ name, column, record string }{
		{"time", fmt.Sprint(r.time), fmt.Sprint(record.Time.UnixMicro())}, {"tool", r.tool, record.Tool}, {"session", r.session, record.Session},
		{"status", r.status, record.Status}, {"principal", r.principal, record.Principal},
	} {
		if c.column != c.record {
			return violation("its column %s was changed: expected %q, got %q", c.name, c.record, c.column)
		}
	}
	v.head, v.lastID = next, r.id
	v.lines++
	v.found()
	v.follow(r.id, &record)
	return nil
}

// follow notes what a line says of others.
func (v *auditVerifier) follow(id int64, r *v1.AuditRecord) {
	switch lines := v.open[r.CallID]; r.Status {
	case v1.StatusStarted:
		v.open[r.CallID] = append(lines, id)
	case v1.StatusComplete, v1.StatusFailed, v1.StatusPending:
		if len(lines) > 1 {
			v.open[r.CallID] = lines[1:]
		} else {
			delete(v.open, r.CallID)
		}
	case v1.StatusChanged:
		if c := r.Change; c != nil && c.Kind == kindAudit && c.To == v.pruned+1 {
			v.said = true
		}
	}
}

// openIntents reads the calls without an outcome, as lists of the audit take them.
func openIntents(ctx context.Context, c *sql.Conn) (map[string][]int64, error) {
	rows, err := c.QueryContext(ctx, "SELECT call_id, line FROM audit_open ORDER BY line")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	open := map[string][]int64{}
	for rows.Next() {
		var call string
		var line int64
		if err := rows.Scan(&call, &line); err != nil {
			return nil, err
		}
		open[call] = append(open[call], line)
	}
	return open, rows.Err()
}

// end looks for what is missing at the end.
func (v *auditVerifier) end(open map[string][]int64) {
	switch {
	case v.violation != nil:
	case v.lastID < v.written:
		v.violation = &store.AuditBreak{Line: v.lastID + 1, Message: missing(v.lastID+1, v.written) + " at the end"}
	case v.pruned > 0 && !v.said:
		v.violation = &store.AuditBreak{Line: v.pruned, Message: "it and those before it are gone, and no line says that they were pruned"}
	case !maps.EqualFunc(open, v.open, slices.Equal[[]int64]):
		v.violation = &store.AuditBreak{Line: v.lastID, Message: "the list of calls without an outcome was changed: 'toolctl audit list --all' shows every line"}
	case v.want != "" && v.pruned > 0:
		v.violation = &store.AuditBreak{Line: v.lastID + 1, Message: fmt.Sprintf("no line has the hash %s: it was of a line before %d, which were pruned, or lines at the end were removed, or the whole audit was written anew", v.want, v.pruned)}
	case v.want != "":
		v.violation = &store.AuditBreak{Line: v.lastID + 1, Message: "no line has the hash " + v.want + ": lines at the end were removed, or the whole audit was written anew"}
	}
}

func missing(first, last int64) string {
	if first == last {
		return "it was removed"
	}
	return fmt.Sprintf("it and those up to line %d were removed", last)
}
