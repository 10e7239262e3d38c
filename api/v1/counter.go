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
	// Window is the length of the calendar span, in UTC, after which the count starts again from 0. With 0 the count
	// never starts again.
	Window time.Duration
	// Idle is how long a count without a window is kept after its last reservation; 0 keeps it forever.
	Idle time.Duration
	// Ends says which span a release is for: [Count.Ends] of the reservation.
	Ends time.Time
}

// End returns the end of the span that contains a time; zero for a count without a window.
func (c Counter) End(now time.Time) time.Time {
	if c.Window <= 0 {
		return time.Time{}
	}
	return now.UTC().Truncate(c.Window).Add(c.Window)
}

// Expiry is when a count that is reserved at a time may be dropped; zero means never.
func (c Counter) Expiry(now time.Time) time.Time {
	if c.Window <= 0 && c.Idle > 0 {
		return now.UTC().Add(c.Idle)
	}
	return c.End(now)
}

// Count is the state of a [Counter].
type Count struct {
	// Used is the number of counted calls.
	Used int64
	// Ends is when the count starts again from 0, by the clock of the counter; zero for a count without a window.
	Ends time.Time
}
