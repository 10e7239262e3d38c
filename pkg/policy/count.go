package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

// count is the counting part of a rule.
type count struct {
	limit int64
	per   string   // a value of spans
	tools []string // patterns of the counted tools; empty means all tools that the policy governs
	id    string   // identifies the count within its policy
	name  string   // name of the limit; may be empty
	// The flags select what is counted separately. A session belongs to its principal, so counting by session implies
	// counting by principal.
	bySession, byPrincipal, byTool bool
	// window is the length of a calendar span; 0 if the rule counts within a session.
	window time.Duration
}

// newCount returns a count. If limit is negative, the count allows no calls, because [Counters] would treat a negative
// limit as no limit.
func newCount(limit int64, per string, tools []string) *count {
	c := &count{limit: max(limit, 0), per: per, tools: tools, bySession: per == v1.PerTurn || per == v1.PerSession}
	switch per {
	case v1.PerMinute:
		c.window = time.Minute
	case v1.PerHour:
		c.window = time.Hour
	case v1.PerDay:
		c.window = 24 * time.Hour
	}
	return c
}

// apart sets what is counted separately. Without values, the default of the span applies.
func (c *count) apart(by []string) {
	if len(by) == 0 {
		return
	}
	c.byTool = slices.Contains(by, v1.ByTool)
	if len(by) == 1 && c.byTool {
		return
	}
	c.bySession, c.byPrincipal = slices.Contains(by, v1.BySession), slices.Contains(by, v1.ByPrincipal)
	if slices.Contains(by, v1.ByAll) {
		c.bySession, c.byPrincipal = false, false
	}
}

func spans() []string {
	return []string{v1.PerTurn, v1.PerSession, v1.PerMinute, v1.PerHour, v1.PerDay}
}

// includes reports whether calls of the tool are counted, and the name that matches.
func (c *count) includes(t *Subject) (fit, bool) {
	if len(c.tools) == 0 {
		return fit{}, true
	}
	return t.among(c.tools)
}

// kept reports whether the count outlives the call. Counts of an unnamed session do not: they always start at 0,
// because the session has only this call. Nor do counts of an unnamed turn outside of a session.
func (c *count) kept(req Request) bool {
	switch {
	case req.Session != "":
		return true
	case c.per == v1.PerTurn && req.Turn == "":
		return false
	}
	return !c.bySession
}

// sessionIdle is how long the count of a session or a turn is kept after its last call.
const sessionIdle = 30 * 24 * time.Hour

// counter returns the counter for a call of the tool. The key of the counter joins the policy, the id of the count,
// the span, what it counts by, and the values of these and of the turn with "|". All parts are escaped, so that
// different counts have different keys.
func (r *rule) counter(t *Subject, req Request) v1.Counter {
	c := v1.Counter{Limit: r.bound, Window: r.count.window}
	if c.Window == 0 && (r.count.bySession || r.count.per == v1.PerTurn) {
		c.Idle = sessionIdle // clients choose the names of sessions and turns, so their number is unlimited
	}
	var buf [192]byte // enough for most keys, so that only the key itself is allocated
	key := append(buf[:0], r.key...)
	if r.count.byPrincipal || r.count.bySession && req.Principal != "" {
		key = append(append(key, escape(req.Principal)...), '|')
	}
	if r.count.bySession {
		key = append(append(key, escape(req.Session)...), '|')
	}
	if r.count.per == v1.PerTurn {
		key = append(append(key, escape(req.Turn)...), '|')
	}
	if r.count.byTool {
		key = append(append(key, escape(t.called())...), '|')
	}
	key = key[:len(key)-1]
	c.Key = string(key)
	return c
}

// escape returns s without "|", "/" and ":". Clients choose the ids of sessions and
// turns, so long ones are replaced by a hash to keep keys short.
func escape(s string) string {
	const longest = 128
	if len(s) > longest {
		sum := sha256.Sum256([]byte(s))
		return "sha256:" + hex.EncodeToString(sum[:])
	}
	return url.QueryEscape(s)
}

// full returns the message for a count that has reached its limit.
func (c *count) full(n v1.Count) string {
	var s string
	switch {
	case c.limit == 0:
		s = fmt.Sprintf("no %s are allowed %s", c.noun(0), c.span())
	case n.Used > c.limit:
		s = fmt.Sprintf("%d %s used %s, and the limit is %d", n.Used, c.noun(n.Used), c.span(), c.limit)
	default:
		s = c.state(n.Used)
	}
	s = c.named(s)
	if !n.Ends.IsZero() && c.limit > 0 {
		s += "; the next " + c.per + " starts at " + n.Ends.UTC().Format(time.RFC3339)
	}
	return s
}

// named prefixes a message with the name of the limit, if it has one.
func (c *count) named(s string) string {
	if c.name == "" {
		return s
	}
	return fmt.Sprintf("limit %q: %s", c.name, s)
}

// state describes the use of the count: "2 of 3 calls used this session".
func (c *count) state(used int64) string {
	return fmt.Sprintf("%d of %d %s used %s", used, c.limit, c.noun(c.limit), c.span())
}

func (c *count) noun(n int64) string {
	var b strings.Builder
	b.WriteString("call")
	if n != 1 {
		b.WriteString("s")
	}
	switch {
	case c.byTool:
		b.WriteString(" of this tool")
	case len(c.tools) > 0:
		b.WriteString(" of " + list(c.tools))
	}
	return b.String()
}

// span describes the span of the count, and whose calls it counts.
func (c *count) span() string {
	s := "this " + c.per
	switch {
	case c.per == v1.PerDay:
		s = "today (UTC)"
	case c.window == 0 && !c.bySession:
		s = map[bool]string{true: "in turns of this name", false: "in all sessions"}[c.per == v1.PerTurn]
	}
	if c.byPrincipal {
		s += " by this principal"
	}
	if c.bySession && c.window > 0 {
		s += " in this session"
	}
	return s
}

// spanAndBy returns the part of the counter's key for the span and for what is counted separately. For the default of
// the span, it returns the span alone.
func (c *count) spanAndBy() string {
	s := c.per
	switch {
	case c.bySession && c.window > 0:
		s += "+session"
	case c.byPrincipal && !c.bySession:
		s += "+principal"
	case !c.bySession && c.window == 0:
		s += "+all"
	}
	if c.byTool {
		s += "+tool"
	}
	return s
}
