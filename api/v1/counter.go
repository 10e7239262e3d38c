package v1

import "time"

// Budget is what is left of a count that limits calls.
type Budget struct {
	// Rule is the field of the policy that counts, for example "limits[0]".
	Rule string `json:"rule"`
	// Policy is the name of the policy, with its namespace when that is not "default".
	Policy string `json:"policy"`
	// Limit is the most calls, Used how many of them are used, Remaining how many are left.
	Limit     int64 `json:"limit"`
	Used      int64 `json:"used"`
	Remaining int64 `json:"remaining"`
	// ResetsAt is when the count starts again from 0; zero for a count of a session or a turn.
	ResetsAt time.Time `json:"resets_at,omitzero"`
}

// Counter is one count that a call reserves, and the limit it must stay within.
type Counter struct {
	// Key names the count, for example "default/careful|max_total_tool_calls|session-1".
	Key string
	// Limit is the most the count may reach; a negative limit only counts.
	Limit int64
	// Expires is when the count is no longer needed and may be dropped; zero means never.
	Expires time.Time
}
