// Package chain links the records of the audit log by their hashes and verifies the links. Backends
// write what it computes, so every store has the same chain and finds the same violations.
package chain

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/plan"
)

// Hash is a hash in the chain. The zero value precedes the first record.
type Hash [sha256.Size]byte

func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Next returns the hash of a record: the SHA-256 of the previous hash and the record's stored JSON, whatever fields it
// has.
func (h Hash) Next(record []byte) (next Hash) {
	sum := sha256.New()
	sum.Write(h[:])
	sum.Write(record)
	sum.Sum(next[:0])
	return next
}

// Line is a record to write.
type Line struct {
	Record v1.AuditRecord
	Text   []byte
}

// NewLine limits the size of a record and sets a missing time to now.
func NewLine(r v1.AuditRecord) (Line, error) {
	if r.Time.IsZero() {
		r.Time = time.Now().UTC()
	}
	r = r.Bound()
	text, err := jsontext.Marshal(r)
	if err != nil {
		return Line{}, fmt.Errorf("audit: call %q cannot be recorded: %w", r.CallID, err)
	}
	return Line{r, text}, nil
}

// NewLines is NewLine for several records.
func NewLines(records ...v1.AuditRecord) ([]Line, error) {
	lines := make([]Line, len(records))
	for i, r := range records {
		var err error
		if lines[i], err = NewLine(r); err != nil {
			return nil, err
		}
	}
	return lines, nil
}

// Begins reports whether a status is that of a record of intent.
func Begins(status string) bool { return status == v1.StatusStarted }

// Ends reports whether a status is the outcome of a call.
func Ends(status string) bool {
	return status == v1.StatusComplete || status == v1.StatusFailed || status == v1.StatusPending
}

// Decision returns the audit record of a person's decision on a pending call.
func Decision(p *v1.PendingCall, approved bool, now time.Time) v1.AuditRecord {
	command := "approvals deny"
	if approved {
		command = "approvals approve"
	}
	return v1.AuditRecord{
		Time: now.UTC(), CallID: p.ID, Principal: p.Principal, Session: p.Session, Turn: p.Turn, Tool: p.Tool, Namespace: p.Namespace,
		ArgsHash: p.ArgsHash, Args: p.Args, Policy: &v1.PolicyDecision{Decision: v1.DecisionPending, Rule: p.Rule, Policy: p.Policy},
		Approval: p.Record(), Status: p.State,
		Change: &v1.AuditChange{Command: command, Action: p.State, Kind: "Approval", Name: p.ID, From: 1, To: 2},
	}
}

// Prune returns the audit record of a prune that started at the record first.
func Prune(opts store.PruneOptions, now time.Time, first int64, p store.AuditPrune, links *Links) v1.AuditRecord {
	return plan.Line(now.UTC(), opts.By, "", &v1.AuditChange{
		Command: "audit prune", Action: string(store.Pruned), Kind: Kind, From: first, To: p.Start, Before: opts.Before.UTC(), Hash: p.Hash,
		Holes: links.Count(), Links: links.Digest(),
	})
}

// Override returns the audit record of an override; before is the version of the replaced override.
func Override(o *store.Override, before int64) v1.AuditRecord {
	action := "overridden"
	if o.Description == "" {
		action = "restored"
	}
	return plan.Line(o.Time, o.Author, o.Namespace, &v1.AuditChange{Command: "override", Action: action, Kind: v1.KindTool, Name: o.Tool, From: before, To: o.Version})
}
