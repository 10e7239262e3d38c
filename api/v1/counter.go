package v1

import "time"

// Counter is one count that a call reserves, and the limit it must stay within.
type Counter struct {
	// Key names the count, for example "default/careful|max_total_tool_calls|session-1".
	Key string
	// Limit is the most the count may reach; a negative limit only counts.
	Limit int64
	// Expires is when the count is no longer needed and may be dropped; zero means never.
	Expires time.Time
}
