package clip

import (
	"strings"
	"unicode/utf8"
)

// Line makes foreign text safe to print in one line, without line breaks and control characters.
func Line(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069:
			return -1
		}
		return r
	}, s)
}

// Words joins the words of a text with single spaces, and cuts the text to n characters.
func Words(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) > n {
		return Runes(s, n-1)
	}
	return s
}
