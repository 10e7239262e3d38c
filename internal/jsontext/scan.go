package jsontext

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Results may contain megabytes of text, and toolctl reads each result several times. This code scans eight
// bytes at a time, whereas encoding/json makes a call for each byte.

// ones and high repeat the byte 0x01 or 0x80 in a word.
const (
	ones = 0x0101010101010101
	high = 0x8080808080808080
)

// scan returns the index, from i on, of the first byte that a string cannot contain unescaped: a quote, a
// backslash, a control character, or with stop = high a byte that is not ASCII. It returns the end of the
// text if there is no such byte.
func scan[T string | []byte](text T, i int, stop uint64) int {
	for ; i+8 <= len(text); i += 8 {
		w := uint64(text[i]) | uint64(text[i+1])<<8 | uint64(text[i+2])<<16 | uint64(text[i+3])<<24 |
			uint64(text[i+4])<<32 | uint64(text[i+5])<<40 | uint64(text[i+6])<<48 | uint64(text[i+7])<<56
		// Tests whether any byte is 0 or less than a number: graphics.stanford.edu/~seander/bithacks.html.
		quote, slash := w^ones*'"', w^ones*'\\'
		if ((quote-ones)&^quote|(slash-ones)&^slash|(w-ones*' ')&^w)&high|w&stop != 0 {
			break
		}
	}
	for ; i < len(text); i++ {
		if c := text[i]; c == '"' || c == '\\' || c < ' ' || c >= utf8.RuneSelf && stop != 0 {
			break
		}
	}
	return i
}

// Plain returns the index, from i on, of the first byte that is a quote, a backslash or a control
// character, or the end of the text if there is no such byte.
func Plain[T string | []byte](text T, i int) int { return scan(text, i, 0) }

// AppendString appends a string as JSON, as [Write] does.
func AppendString(b *bytes.Buffer, s string) {
	const hex = "0123456789abcdef"
	b.WriteByte('"')
	from := 0
	for i := scan(s, 0, high); i < len(s); i = scan(s, i, high) {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if n > 1 && r != '\u2028' && r != '\u2029' {
				i += n
				continue
			}
			b.WriteString(s[from:i])
			if n == 1 {
				b.WriteString(`\ufffd`)
			} else { // U+2028 and U+2029 end lines in JavaScript
				b.WriteString(`\u202`)
				b.WriteByte(hex[r&0xf])
			}
			i += n
			from = i
			continue
		}
		b.WriteString(s[from:i])
		b.WriteByte('\\')
		if at := strings.IndexByte("\"\\\b\f\n\r\t", c); at >= 0 {
			b.WriteByte(`"\bfnrt`[at])
		} else {
			b.WriteString("u00")
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&0xf])
		}
		i++
		from = i
	}
	b.WriteString(s[from:])
	b.WriteByte('"')
}

// Unquote returns the text of a string of valid JSON, as [json.Unmarshal] does.
func Unquote(quoted []byte) string {
	raw := quoted[1 : len(quoted)-1]
	if !utf8.Valid(raw) {
		var s string
		_ = json.Unmarshal(quoted, &s) // cannot fail for valid JSON
		return s
	}
	i := scan(raw, 0, 0)
	if i == len(raw) {
		return string(raw)
	}
	var b strings.Builder
	b.Grow(len(raw))
	for from := 0; ; {
		b.Write(raw[from:i])
		if i >= len(raw) {
			return b.String()
		}
		var r rune
		r, from = escape(string(raw[i:min(i+12, len(raw))]))
		b.WriteRune(r)
		from += i
		i = scan(raw, from, 0)
	}
}

// escape reads the escape at the start of a text, or a pair of escapes for one character, and returns its
// end.
func escape(text string) (r rune, end int) {
	if text[1] != 'u' {
		return rune("\"\\/\b\f\n\r\t"[strings.IndexByte(`"\/bfnrt`, text[1])]), 2
	}
	r = hex4(text[2:6])
	if utf16.IsSurrogate(r) {
		if len(text) == 12 && text[6] == '\\' && text[7] == 'u' {
			if pair := utf16.DecodeRune(r, hex4(text[8:12])); pair != utf8.RuneError {
				return pair, 12
			}
		}
		return utf8.RuneError, 6
	}
	return r, 6
}

func hex4(digits string) rune {
	n, _ := strconv.ParseUint(digits, 16, 16) // cannot fail for valid JSON
	return rune(n)
}
