// Package clip shortens foreign texts for messages, and formats counts and durations. It never
// cuts through a character, an accented letter, a joined emoji or a flag.
package clip

import (
	"unicode"
	"unicode/utf8"
)

// Mark is the end of a text that was cut.
const Mark = "…"

// Bytes cuts a text longer than n bytes to n bytes, or a few fewer, and adds [Mark].
func Bytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return Start(s, n) + Mark
}

// Runes cuts a text longer than n characters to n characters, or a few fewer, and adds [Mark].
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
	const longest = 64 // no real character is a longer cluster
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

// joined reports whether next belongs to the same cluster as last, the last character of before.
// It implements the rules of UAX 29 (section 3.1.1) for marks, joiners, variations, skin tones,
// flags and line ends.
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

// flag reports whether a character is a regional indicator, two of which form a flag.
func flag(r rune) bool { return unicode.Is(unicode.Regional_Indicator, r) }
