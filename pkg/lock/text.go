package lock

import (
	"fmt"
	"strings"
	"unicode"
)

// isBlock reports whether a text of several lines can be written as a literal block scalar without loss, and
// contains no invisible characters.
func isBlock(s string) bool {
	if !strings.Contains(s, "\n") || strings.ContainsRune(" \t\n", rune(s[0])) || strings.HasSuffix(s, "\n") {
		return false
	}
	for line := range strings.SplitSeq(s, "\n") {
		if strings.TrimRight(line, " \t") != line {
			return false // trailing spaces are invisible, and an editor may remove them
		}
	}
	return !strings.ContainsFunc(s, func(r rune) bool { return r != '\n' && r != '\t' && hidden(r) })
}

// quote returns a text as a quoted scalar, with escapes only for invisible characters
// (YAML 1.2, sections 7.3.1 and 7.3.2).
func quote(s string) string {
	if !strings.ContainsFunc(s, hidden) {
		if !strings.ContainsAny(s, `"\`) {
			return `"` + s + `"`
		}
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case !hidden(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08X`, r)
		default:
			fmt.Fprintf(&b, `\u%04X`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// hidden reports whether a character is invisible to people, or not allowed in YAML
// without an escape.
func hidden(r rune) bool {
	switch {
	case r == ' ':
		return false
	case !unicode.IsPrint(r), r == unicode.ReplacementChar:
		return true
	case r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0100 && r <= 0xe01ef: // variation selectors
		return true
	case r == 0x034f, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r == 0x3164, r == 0xffa0: // joiner, fillers
		return true
	}
	return false
}
