package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Audit is the audit log: a record of each call and each change, in one chain: the hash of a line is
// the SHA-256 of the hash before it, 32 zero bytes for the first, and of the line's JSON as
// it is stored.
type Audit interface {
	// AppendAudit adds a line to the audit and to its chain. A line without a time gets
	// that of now.
	AppendAudit(ctx context.Context, line v1.AuditRecord) error
	// EachAudit calls fn for lines of the audit, the newest last, until it returns an
	// error, which EachAudit returns. Lines that are added meanwhile are left out. It holds
	// a part of them at a time, and no lock while fn runs.
	EachAudit(ctx context.Context, filter AuditFilter, fn func(AuditLine) error) error
	// FollowAudit calls fn for the lines that EachAudit would, and then for those that any
	// process adds, some at a time, until ctx ends or fn returns an error, which it returns.
	// It is called at least once, with no lines when there are none.
	FollowAudit(ctx context.Context, filter AuditFilter, fn func([]AuditLine) error) error
	// AuditHead returns the end of the chain as it is stored, unchecked.
	AuditHead(ctx context.Context) (AuditHead, error)
	// VerifyAudit checks the chain of the audit: that no line was changed, removed, added
	// or moved. Of an audit that was pruned it checks what is left, and that a line says so.
	//
	// The chain has no secret: who can write the store can cut its end off, or make the
	// whole of it anew. Against that, head is the hash of a line, noted earlier, that must
	// still be there; "" asks for none. It must be 64 hexadecimal digits.
	VerifyAudit(ctx context.Context, head string) (AuditCheck, error)
	// PruneAudit removes the lines of the audit that are before a time, wherever they stand, and
	// adds a line that says so. VerifyAudit proves what is left. It works in steps, each of which
	// adds a line: when it fails, or ctx ends, those that are done stay done.
	PruneAudit(ctx context.Context, opts PruneOptions) (AuditPrune, error)
}

// AuditFilter chooses lines of the audit. The zero value is all of them.
type AuditFilter struct {
	// Since keeps lines of that time and later.
	Since time.Time
	// After keeps lines whose ID is larger.
	After int64
	// UpTo keeps lines whose ID is not larger, unless it is 0.
	UpTo int64
	// Namespace, Tool, Session, Status and Principal keep the lines that have them; "" keeps
	// all. All but Status may be globs of * and ?.
	Namespace, Tool, Session, Status, Principal string
	// Settled leaves out the lines of intent of calls whose outcome is known.
	Settled bool
	// Limit is the most lines to return, the newest ones; 0 returns all.
	Limit int
}

// Check refuses a filter that makes no sense. Backends ask it.
func (f AuditFilter) Check() error {
	if f.Limit < 0 {
		return fmt.Errorf("audit: limit %d may not be negative", f.Limit)
	}
	return nil
}

// ListAudit returns the lines of an audit that a filter chooses, decoded, in the order in
// which they were written, the newest last.
func ListAudit(ctx context.Context, a Audit, filter AuditFilter) ([]v1.AuditRecord, error) {
	var records []v1.AuditRecord
	err := a.EachAudit(ctx, filter, func(l AuditLine) error {
		r, err := l.Record()
		records = append(records, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	return records, nil
}

// AuditLine is a record of the audit with its place in the chain.
type AuditLine struct {
	// ID numbers the lines from 1, without gaps but those of lines that were pruned.
	ID int64
	// Hash is the SHA-256 of the hash before it and Text, in hexadecimal; empty for a
	// line that was written before stores had a chain.
	Hash string
	// Text is the record as JSON, byte for byte as it was written.
	Text []byte
}

// Record decodes the line.
func (l AuditLine) Record() (v1.AuditRecord, error) {
	var r v1.AuditRecord
	if err := json.Unmarshal(l.Text, &r); err != nil {
		return r, fmt.Errorf("%w: audit: line %d: %w", ErrDamaged, l.ID, err)
	}
	return r, nil
}

// PruneOptions say what [Store.PruneAudit] removes.
type PruneOptions struct {
	// Before is a time in the past; lines before it go.
	Before time.Time
	// By is who prunes, for the audit.
	By string
	// DryRun removes nothing.
	DryRun bool
}

// AuditPrune is what [Store.PruneAudit] removed.
type AuditPrune struct {
	// Lines is how many lines were removed, and Kept how many are left, without those that
	// say so.
	Lines int64 `json:"lines"`
	Kept  int64 `json:"kept"`
	// Start is the ID of the first line that is left.
	Start int64 `json:"start"`
	// Hash is that of the line before it, from which the chain goes on; empty when no line was
	// removed, or when it was older than the chain.
	Hash string `json:"hash,omitempty"`
}

// Check refuses a time that is not in the past. Backends ask it.
func (o PruneOptions) Check(now time.Time) error {
	if !o.Before.Before(now) {
		return fmt.Errorf("audit: prune before %s: expected a time in the past", o.Before.UTC().Format(time.RFC3339))
	}
	return nil
}
