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
	Status string          `json:"status"`
	// ErrorType is the type of the result's error, if it failed.
	ErrorType  string  `json:"error_type,omitempty"`
	DurationMS float64 `json:"duration_ms"`
	// Effects are what the call did outside this process.
	Effects []Effect `json:"effects,omitempty"`
}
