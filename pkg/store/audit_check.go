package store

import (
	"fmt"
	"time"
)

// AuditCheck is what [Store.VerifyAudit] found.
type AuditCheck struct {
	// Lines is how many lines of the chain were checked and found intact.
	Lines int64 `json:"lines"`
	// Unchained is how many lines are older than the chain, which says nothing of them.
	Unchained int64 `json:"unchained"`
	// Pruned is how many lines before them 'toolctl audit prune' removed.
	Pruned int64 `json:"pruned,omitempty"`
	// Head is the hash of the last line that was found intact, or 64 zeros when there is none.
	Head string `json:"head"`
	// Broken is the first violation; nil when there is none.
	Broken *AuditBreak `json:"broken,omitempty"`
}

// AuditBreak is a place at which the chain is broken.
type AuditBreak struct {
	// Line is the ID of the line, or of the first one that is missing.
	Line int64 `json:"line"`
	// CallID and Time are what the line says of itself, if it can be read.
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
	// Hash is the hash of the last line, or 64 zeros when there is none.
	Hash string
	// Lines is how many lines were ever written.
	Lines int64
}
