package v1

import (
	"encoding/json"
	"time"
)

// AuditRecord is one line of the audit: who called what, what was decided, and
// how it ended. Arguments are redacted before they get here.
type AuditRecord struct {
	Time      time.Time `json:"time"`
	CallID    string    `json:"call_id"`
	Principal string    `json:"principal,omitempty"`
	Session   string    `json:"session,omitempty"`
	Turn      string    `json:"turn,omitempty"`
	Tool      string    `json:"tool"`
	Namespace string    `json:"namespace"`
	// ArgsHash is the SHA-256 of the arguments as they were called, in hexadecimal.
	ArgsHash string `json:"args_hash,omitempty"`
	// Args are the arguments with secrets masked.
	Args   json.RawMessage `json:"args,omitempty"`
	Policy *PolicyDecision `json:"policy,omitempty"`
	// Approval is what a person decided on the call; nil when nobody was asked, or has not
	// decided yet.
	Approval *ApprovalRecord `json:"approval,omitempty"`
	// Status is that of the result: "complete", "failed" or "pending". A line on a decision
	// that was made apart from a call has "approved" or "denied".
	Status string `json:"status"`
	// ErrorType is the type of the result's error, if it failed.
	ErrorType  string  `json:"error_type,omitempty"`
	DurationMS float64 `json:"duration_ms"`
	// Repair says how arguments that a model wrote became a JSON object; see [Result].
	Repair string `json:"repair,omitempty"`
	// Effects are what the call did outside this process.
	Effects []Effect `json:"effects,omitempty"`
}
