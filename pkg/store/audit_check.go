package store

import (
	"fmt"
	"time"
)

// AuditCheck is the result of [Store.VerifyAudit].
type AuditCheck struct {
	// Lines is the number of records in the chain that are intact.
	Lines int64 `json:"lines"`
	// Unchained is the number of records that are older than the chain and cannot be verified.
	Unchained int64 `json:"unchained"`
	// Pruned is the number of earlier records that 'toolctl audit prune' removed.
	Pruned int64 `json:"pruned,omitempty"`
	// Head is the hash of the last intact record, or 64 zeros if there is none.
	Head string `json:"head"`
	// Broken is the first violation, or nil.
	Broken *AuditBreak `json:"broken,omitempty"`
}

// AuditBreak is a place at which the chain is broken.
type AuditBreak struct {
	// Line is the ID of the record, or of the first missing record.
	Line int64 `json:"line"`
	// CallID and Time are those of the record, if it can be read.
	CallID string    `json:"call_id,omitempty"`
	Time   time.Time `json:"time,omitzero"`
	// Message says what is wrong.
	Message string `json:"message"`
}

func (f *AuditBreak) Error() string {
	if f.CallID == "" {
		return fmt.Sprintf("line %d: %s", f.Line, f.Message)
	}
	return fmt.Sprintf("line %d (call %q at %s): %s", f.Line, f.CallID, f.Time.UTC().Format(time.RFC3339), f.Message)
}

// AuditHead is the end of the chain.
type AuditHead struct {
	// Hash is the hash of the last record, or 64 zeros without records.
	Hash string
	// Lines is the number of records ever written.
	Lines int64
}
