// Package clip shortens texts that came from elsewhere before a message repeats them. It
// never cuts a character in two, nor an accent, a joined emoji or a flag off from what it
// belongs to.
package clip

import (
	"unicode"
	"unicode/utf8"
)

// Mark stands at the end of a text that was cut.
const Mark = "…"

// Bytes returns the first n bytes of a longer text, or a few less, and [Mark].
func Bytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return Start(s, n) + Mark
}

// Runes returns the first n characters of a longer text, or a few less, and [Mark].
func Runes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	end := 0
	for range n {
		_, size := utf8.DecodeRuneInString(s[end:])
		if end += size; end == len(s) {
			return s
		}
	}
	return Start(s, end) + Mark
}

// Start returns at most the first n bytes of a text.
func Start(s string, n int) string {
	if len(s) <= n {
		return s
	}
	end := max(n, 0)
	for i := 0; i < utf8.UTFMax-1 && end > 0 && !utf8.RuneStart(s[end]); i++ {
		end--
	}
	const longest = 64 // a longer cluster is no character that anyone reads
	for at := end; end-at < longest; {
		last, size := utf8.DecodeLastRuneInString(s[:at])
		next, _ := utf8.DecodeRuneInString(s[at:])
		if size == 0 || !joined(s[:at], last, next) {
			return s[:at]
		}
		at -= size
	}
	return s[:end]
}

// joined reports whether a character belongs to the one before it, the last one of a text.
// It knows the rules of UAX 29 (section 3.1.1) for what texts of today have: marks, joiners,
// variations, the colours of skin, flags and line ends.
func joined(before string, last, next rune) bool {
	const zeroWidthJoiner, firstTone, lastTone = '\u200d', '\U0001f3fb', '\U0001f3ff'
	switch {
	case last == '\r':
		return next == '\n'
	case next == zeroWidthJoiner, last == zeroWidthJoiner, unicode.Is(unicode.M, next), next >= firstTone && next <= lastTone:
		return true
	case flag(last) && flag(next):
		count := 0
		for flag(last) {
			count++
			before = before[:len(before)-utf8.RuneLen(last)]
			last, _ = utf8.DecodeLastRuneInString(before)
		}
		return count%2 == 1
	}
	return false
}

// flag reports whether a character is one of the letters whose pairs are flags.
func flag(r rune) bool { return unicode.Is(unicode.Regional_Indicator, r) }
