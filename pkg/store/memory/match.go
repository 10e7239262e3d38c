package memory

import (
	"regexp"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/chain"
)

// matcher is a filter of the audit, ready to be asked.
type matcher struct {
	store.AuditFilter
	tool, session, principal, namespace func(string) bool
}

func newMatcher(f store.AuditFilter) *matcher {
	return &matcher{f, pattern(f.Tool), pattern(f.Session), pattern(f.Principal), pattern(f.Namespace)}
}

// pattern returns the test of a value, which may be a glob of * and ?.
func pattern(p string) func(string) bool {
	switch {
	case p == "":
		return func(string) bool { return true }
	case strings.ContainsAny(p, "*?"):
		expr := strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(p))
		return regexp.MustCompile(`(?s)^` + expr + `$`).MatchString
	}
	return func(s string) bool { return s == p }
}

// fits reports whether the filter chooses a line. open are the lines of intent without an
// outcome.
func (m *matcher) fits(r *chain.Row, open map[string][]int64) bool {
	if r.ID <= m.After || m.UpTo > 0 && r.ID > m.UpTo || m.Status != "" && r.Status != m.Status {
		return false
	}
	if !m.Since.IsZero() && r.Time < m.Since.UnixMicro() || !m.tool(r.Tool) || !m.session(r.Session) || !m.principal(r.Principal) {
		return false
	}
	if m.AuditFilter.Namespace == "" && (!m.Settled || r.Status != v1.StatusStarted) {
		return true
	}
	record, err := store.AuditLine{ID: r.ID, Text: r.Text}.Record()
	return err == nil && m.namespace(record.Namespace) &&
		(!m.Settled || r.Status != v1.StatusStarted || slices.Contains(open[record.CallID], r.ID))
}
