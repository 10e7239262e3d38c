package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Audit is the audit log: a record of each call and each change, in one hash chain. The hash of a record is the SHA-256
// of the previous hash, which is 32 zero bytes for the first record, and of the record's stored JSON.
type Audit interface {
	// AppendAudit adds a record to the audit log and to its chain. A record without a time gets the current time.
	AppendAudit(ctx context.Context, line v1.AuditRecord) error
	// EachAudit calls fn for the selected records, newest last, until fn returns an error, which EachAudit returns. It
	// leaves out records that are added during the call. It loads a part of them at a time, and holds no lock while fn
	// runs.
	EachAudit(ctx context.Context, filter AuditFilter, fn func(AuditLine) error) error
	// FollowAudit calls fn for the records that EachAudit would select, and then for those that any process adds, in
	// batches, until ctx ends or fn returns an error, which it returns. It calls fn at least once, with no records if
	// there are none.
	FollowAudit(ctx context.Context, filter AuditFilter, fn func([]AuditLine) error) error
	// AuditHead returns the stored end of the chain without checking it.
	AuditHead(ctx context.Context) (AuditHead, error)
	// VerifyAudit checks that no record in the chain was changed, removed, added or moved. In a pruned audit log it
	// checks the remaining records, and that a record of the pruning exists.
	//
	// The chain has no secret: anyone who can write the store can cut its end off or rebuild the whole chain. To detect
	// that, head is the hash of a record, noted earlier, that must still exist: 64 hexadecimal digits, or "" for no
	// such check.
	VerifyAudit(ctx context.Context, head string) (AuditCheck, error)
	// PruneAudit removes the records before a time, wherever they are, and adds a record of the pruning. VerifyAudit
	// can still verify the remaining records. It works in steps, each of which adds a record. If it fails or ctx ends,
	// completed steps stay.
	PruneAudit(ctx context.Context, opts PruneOptions) (AuditPrune, error)
}

// AuditFilter selects audit records. The zero value selects all.
type AuditFilter struct {
	// Since selects records at or after that time.
	Since time.Time
	// After selects records with a larger ID.
	After int64
	// UpTo selects records up to and including that ID, unless it is 0.
	UpTo int64
	// Namespace, Tool, Session, Status and Principal select records by these fields; "" selects all. All except Status
	// may be globs with * and ?.
	Namespace, Tool, Session, Status, Principal string
	// Settled omits the records of intent of calls whose outcome is known.
	Settled bool
	// Limit is the maximum number of records, of which the newest are selected; 0 means no limit.
	Limit int
}

// Check returns an error for an invalid filter. Backends call it.
func (f AuditFilter) Check() error {
	if f.Limit < 0 {
		return fmt.Errorf("audit: limit %d may not be negative", f.Limit)
	}
	return nil
}

// ListAudit returns the selected records, decoded, in the order in which they were written, newest last.
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

// AuditLine is an audit record with its place in the chain.
type AuditLine struct {
	// ID numbers the records from 1. Only pruning leaves gaps.
	ID int64
	// Hash is the SHA-256 of the previous hash and Text, in hexadecimal; empty for a record that is older than the
	// chain.
	Hash string
	// Text is the record as JSON, byte for byte as it was written.
	Text []byte
}

// Record decodes the record.
func (l AuditLine) Record() (v1.AuditRecord, error) {
	var r v1.AuditRecord
	if err := json.Unmarshal(l.Text, &r); err != nil {
		return r, fmt.Errorf("%w: audit: line %d: %w", ErrDamaged, l.ID, err)
	}
	return r, nil
}

// PruneOptions configure [Store.PruneAudit].
type PruneOptions struct {
	// Before is a time in the past; records before it are removed.
	Before time.Time
	// By is the user who prunes, for the audit log.
	By string
	// DryRun removes nothing.
	DryRun bool
}

// AuditPrune is the result of [Store.PruneAudit].
type AuditPrune struct {
	// Lines is the number of removed records, and Kept the number of remaining ones, without records of pruning.
	Lines int64 `json:"lines"`
	Kept  int64 `json:"kept"`
	// Start is the ID of the first remaining record.
	Start int64 `json:"start"`
	// Hash is the hash of the record before Start, at which the chain continues. It is empty if no record was removed,
	// or if the removed records are older than the chain.
	Hash string `json:"hash,omitempty"`
}

// Check returns an error for a time that is not in the past. Backends call it.
func (o PruneOptions) Check(now time.Time) error {
	if !o.Before.Before(now) {
		return fmt.Errorf("audit: prune before %s: expected a time in the past", o.Before.UTC().Format(time.RFC3339))
	}
	return nil
}
