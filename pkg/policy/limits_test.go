package policy

import (
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

func limitsOf(l ...v1.Limit) v1.ToolPolicySpec { return v1.ToolPolicySpec{Limits: l} }

func TestLimits(t *testing.T) {
	const broken = `the limit is broken: expected max_calls, and per to be turn, session, minute, hour or day`
	playAll(t, []ruleTest{
		{name: "tools are counted together", spec: limitsOf(v1.Limit{Tools: []string{"pay-*", "refund"}, MaxCalls: n(2), Per: v1.PerSession}), steps: []step{
			{tool: "pay-a", session: "s"},
			{tool: "get", session: "s"},
			{tool: "refund", session: "s"},
			{tool: "pay-b", session: "s", want: `tool "pay-b": refused by policy "careful", rule limits[0]: 2 of 2 calls of "pay-*", "refund" used this session (careful.yaml:16:3)`},
			{tool: "get", session: "s"},
			{tool: "pay-b", session: "other"},
		}},
		{name: "0 allows none of its tools", spec: limitsOf(v1.Limit{Tools: []string{"pay"}, MaxCalls: n(0), Per: v1.PerDay}), steps: []step{
			{tool: "get"},
			{tool: "pay", want: `tool "pay": refused by policy "careful", rule limits[0]: no calls of "pay" are allowed today (UTC) (careful.yaml:16:3)`},
		}},
		{name: "turn", spec: limitsOf(v1.Limit{MaxCalls: n(1), Per: v1.PerTurn}), steps: []step{
			{tool: "get", session: "s", turn: "1"},
			{tool: "get", session: "s", turn: "2"},
			{tool: "get", session: "s", turn: "1", want: `tool "get": refused by policy "careful", rule limits[0]: 1 of 1 call used this turn (careful.yaml:16:3)`},
		}},
		{name: "minute counts all sessions in calendar minutes", spec: limitsOf(v1.Limit{MaxCalls: n(2), Per: v1.PerMinute}), steps: []step{
			{tool: "get", session: "a"},
			{tool: "get"},
			{tool: "get", session: "b", after: 29 * time.Second, want: `tool "get": refused by policy "careful", rule limits[0]: 2 of 2 calls used this minute; the next minute starts at 2026-03-01T12:01:00Z (careful.yaml:16:3)`},
			{tool: "get", session: "b", after: 30 * time.Second},
		}},
		{name: "hour", spec: limitsOf(v1.Limit{MaxCalls: n(1), Per: v1.PerHour}), steps: []step{
			{tool: "get", session: "a"},
			{tool: "get", session: "b", after: 59 * time.Minute, want: `tool "get": refused by policy "careful", rule limits[0]: 1 of 1 call used this hour; the next hour starts at 2026-03-01T13:00:00Z (careful.yaml:16:3)`},
			{tool: "get", session: "b", after: 60 * time.Minute},
		}},
		{name: "day", spec: limitsOf(v1.Limit{MaxCalls: n(1), Per: v1.PerDay}), steps: []step{
			{tool: "get"},
			{tool: "get", after: 11 * time.Hour, want: `tool "get": refused by policy "careful", rule limits[0]: 1 of 1 call used today (UTC); the next day starts at 2026-03-02T00:00:00Z (careful.yaml:16:3)`},
			{tool: "get", after: 12 * time.Hour},
		}},
		{
			name: "the first full one is named",
			spec: limitsOf(v1.Limit{MaxCalls: n(3), Per: v1.PerSession}, v1.Limit{Tools: []string{"pay"}, MaxCalls: n(1), Per: v1.PerSession}),
			steps: []step{
				{tool: "pay", session: "s"},
				{tool: "pay", session: "s", want: `tool "pay": refused by policy "careful", rule limits[1]: 1 of 1 call of "pay" used this session (careful.yaml:17:3)`},
				{tool: "get", session: "s"},
				{tool: "get", session: "s"},
				{tool: "pay", session: "s", want: `tool "pay": refused by policy "careful", rule limits[0]: 3 of 3 calls used this session (careful.yaml:16:3)`},
			},
		},
		{name: "without max_calls it refuses", spec: limitsOf(v1.Limit{Tools: []string{"pay"}, Per: v1.PerDay}), steps: []step{
			{tool: "get"},
			{tool: "pay", want: `tool "pay": refused by policy "careful", rule limits[0]: ` + broken + ` (careful.yaml:16:3)`},
		}},
		{name: "with an unknown span it refuses", spec: limitsOf(v1.Limit{MaxCalls: n(9), Per: "week"}), steps: []step{
			{tool: "pay", want: `tool "pay": refused by policy "careful", rule limits[0]: ` + broken + ` (careful.yaml:16:3)`},
		}},
	})
}

// TestWindowsAreUTC checks that calendar spans are in UTC, regardless of the clock's time zone.
func TestWindowsAreUTC(t *testing.T) {
	chain := Compile([]*v1.ToolPolicy{named("p", limitsOf(v1.Limit{MaxCalls: n(1), Per: v1.PerDay}))}).For(tool("get"))
	m := newCounters()
	zone := time.FixedZone("far east", 14*3600)
	midnight := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		now     time.Time
		refused bool
	}{
		{midnight.Add(-time.Second), false},
		{midnight.Add(-time.Nanosecond).In(zone), true},
		{midnight.In(zone), false},
		{midnight.Add(24*time.Hour - 1), true},
	} {
		m.now = tt.now
		if _, err := chain.Admit(t.Context(), m, Request{}); (err != nil) != tt.refused {
			t.Errorf("at %v: %v, want a refusal: %v", tt.now, err, tt.refused)
		}
	}
}
