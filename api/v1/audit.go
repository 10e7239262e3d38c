package v1

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Statuses of audit lines, in addition to those of results and of decisions on approvals.
const (
	// StatusStarted is the status of a line of intent, which is written before an executor runs. A call without another
	// line was running when its process ended, so its outcome is unknown.
	StatusStarted = "started"
	// StatusChanged is the status of a change of the store; see [AuditRecord.Change].
	StatusChanged = "changed"
	// StatusGap is the status of a line that replaces lines that could not be written.
	StatusGap = "gap"
)

// AuditRecord is one line of the audit: who called what, what was decided, and
// how it ended; or who searched for which tools. Arguments are redacted before they get here. A call that reaches its
// executor has two lines of one CallID: [StatusStarted] before, and its outcome after.
type AuditRecord struct {
	Time      time.Time `json:"time"`
	CallID    string    `json:"call_id"`
	Principal string    `json:"principal,omitempty"`
	Session   string    `json:"session,omitempty"`
	Turn      string    `json:"turn,omitempty"`
	Tool      string    `json:"tool"`
	Namespace string    `json:"namespace"`
	// ArgsHash is the SHA-256 of the arguments of the call, in hexadecimal.
	ArgsHash string `json:"args_hash,omitempty"`
	// Args are the arguments with secrets masked, up to [MaxAuditArgs] bytes of them.
	Args json.RawMessage `json:"args,omitempty"`
	// ArgsStart is the beginning of the text of longer arguments, secrets masked, and ArgsBytes
	// the length of all of it. Args is empty then.
	ArgsStart string          `json:"args_start,omitempty"`
	ArgsBytes int             `json:"args_bytes,omitempty"`
	Policy    *PolicyDecision `json:"policy,omitempty"`
	// Approval is the decision of a person on the call; nil if nobody was asked or nobody has decided yet.
	Approval *ApprovalRecord `json:"approval,omitempty"`
	// Status is that of the result: "complete", "failed" or "pending"; or "started" before
	// there is one. A line on a decision that was made apart from a call has "approved" or
	// "denied", one on a change of the store "changed", and one on missing lines "gap".
	Status string `json:"status"`
	// ErrorType is the type of the result's error, if it failed.
	ErrorType  string  `json:"error_type,omitempty"`
	DurationMS float64 `json:"duration_ms"`
	// Repair states how the arguments of a model were turned into a JSON object; see [Result].
	Repair string `json:"repair,omitempty"`
	// Effects are what the call did outside this process, the first [MaxAuditEffects] of it.
	Effects []Effect `json:"effects,omitempty"`
	// EffectsCount is the number of effects if Effects does not contain all.
	EffectsCount int `json:"effects_count,omitempty"`
	// Change describes a change of the store; nil for other lines. The principal of such a line made the change.
	Change *AuditChange `json:"change,omitempty"`
	// Gap describes missing lines; nil for other lines.
	Gap *AuditGap `json:"gap,omitempty"`
	// Late says that the audit could not be written when the call ended, so that the line came later. It
	// may come twice: an attempt that seemed to fail may have been carried out.
	Late bool `json:"late,omitempty"`
}

// AuditChange is one object's change by a command.
type AuditChange struct {
	// Command is the command that made the change, such as "apply", "delete", "mcp connect" or "override".
	Command string `json:"command"`
	// Action is what happened: "created", "configured", "deleted", "pruned", "taken over",
	// "overridden", "restored", "approved" or "denied".
	Action string `json:"action"`
	// Kind and Name name the object; its namespace is that of the line.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Set is the apply set of the object, if it is in one.
	Set string `json:"set,omitempty"`
	// TakenFrom is the set that the object belonged to before.
	TakenFrom string `json:"taken_from,omitempty"`
	// From and To are the object's versions before and after, 0 for none: an object's
	// resourceVersion, which is not the revision of its set, an override's version, of an approval 1 while it waits and 2 then, and
	// of the audit the lines that it begins with.
	From int64 `json:"from"`
	To   int64 `json:"to"`
	// Commit is the commit of git that the manifests of an apply are from, if it is known.
	Commit string `json:"commit,omitempty"`
	// Before and Hash are of "audit prune": lines before that time were removed, and Hash
	// is that of the line before the first that is left, from which the chain goes on.
	Before time.Time `json:"before,omitzero"`
	Hash   string    `json:"hash,omitempty"`
	// Holes is at how many places between lines that are left others were removed: lines whose
	// times are not in the order of the lines. Links is a digest of what is left around them.
	Holes int64  `json:"holes,omitempty"`
	Links string `json:"links,omitempty"`
}

// AuditGap reports that lines are missing because the audit could not be written.
type AuditGap struct {
	// Lines is the number of missing lines.
	Lines int64 `json:"lines"`
	// Since and Until are the times of the first and the last of them.
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// Reason is the last error.
	Reason string `json:"reason"`
}

// IsSearch reports whether the line records a search for tools with [FindTools], which is not a call.
func (r *AuditRecord) IsSearch() bool {
	return r.Tool == FindTools && r.Namespace == "" && r.Status == StatusComplete
}

// Bounds of an audit line.
const (
	MaxAuditArgs    = 4 << 10
	MaxAuditEffects = 64
	maxAuditText    = 256  // of a name that a caller chooses
	maxAuditLong    = 1024 // of a text that says why, and of a URL
)

// Bound returns the line with all texts that callers control cut to the limits of a line.
func (r AuditRecord) Bound() AuditRecord {
	if len(r.Args) > MaxAuditArgs {
		r.ArgsStart, r.ArgsBytes, r.Args = start(string(r.Args)), len(r.Args), nil
	}
	for _, s := range []*string{&r.CallID, &r.Principal, &r.Session, &r.Turn, &r.Tool, &r.Namespace} {
		*s = plainText(*s)
		if len(*s) > maxAuditText {
			*s = shortened(*s, maxAuditText)
		}
	}
	if len(r.Effects) > MaxAuditEffects {
		r.EffectsCount, r.Effects = len(r.Effects), r.Effects[:MaxAuditEffects]
	}
	for i, e := range r.Effects {
		if short := e.bound(); short != e {
			r.Effects = append([]Effect(nil), r.Effects...)
			for j := i; j < len(r.Effects); j++ {
				r.Effects[j] = r.Effects[j].bound()
			}
			break
		}
	}
	if r.Gap != nil && len(r.Gap.Reason) > maxAuditLong {
		g := *r.Gap
		g.Reason = shortened(g.Reason, maxAuditLong)
		r.Gap = &g
	}
	return r
}

func (e Effect) bound() Effect {
	for _, s := range []*string{&e.Method, &e.URL, &e.Host, &e.Server, &e.Tool, &e.Path, &e.Operation, &e.Command} {
		if len(*s) > maxAuditLong {
			*s = shortened(*s, maxAuditLong)
		}
	}
	return e
}

// start returns the beginning of a text of which at most MaxAuditArgs bytes are written as JSON.
func start(text string) string {
	n := MaxAuditArgs
	for {
		s := strings.ToValidUTF8(text[:n], "")
		b, err := json.Marshal(s)
		if err != nil || len(b) <= MaxAuditArgs {
			return s
		}
		n = n * MaxAuditArgs / (len(b) + 1)
	}
}

// plainText is a text as JSON and every store can keep it: UTF-8 without NUL.
func plainText(text string) string {
	if strings.IndexByte(text, 0) < 0 && utf8.ValidString(text) {
		return text
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "\ufffd")
}

// shortened says at the end how long a text was, and is at most n bytes long.
func shortened(text string, n int) string {
	end := fmt.Sprintf("… (%d bytes)", len(text))
	return strings.ToValidUTF8(text[:n-len(end)], "") + end
}
