package jsontext

import (
	"bytes"
	"strings"
)

// maxDepth is the maximum nesting depth of encoding/json.
const maxDepth = 10_000

// Valid is [json.Valid].
func Valid(text []byte) bool {
	i := ValidValue(text, SkipSpace(text, 0), 1)
	return i >= 0 && SkipSpace(text, i) == len(text)
}

// SkipSpace returns the end of the white space at i.
func SkipSpace[T string | []byte](text T, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r') {
		i++
	}
	return i
}

// ValidValue returns the end of the value that starts at text[i] at a nesting depth, or -1 if the value is
// invalid.
func ValidValue(text []byte, i, depth int) int {
	if i >= len(text) {
		return -1
	}
	switch c := text[i]; {
	case c == '"':
		return ValidString(text, i)
	case c == '{', c == '[':
		return list(text, i, depth)
	case c == '-' || c >= '0' && c <= '9':
		return ValidNumber(text, i)
	}
	for _, word := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(text[i:], []byte(word)) {
			return i + len(word)
		}
	}
	return -1
}

// list is ValidValue for an object or an array.
func list(text []byte, i, depth int) int {
	if depth > maxDepth {
		return -1
	}
	object, last := text[i] == '{', text[i]+2 // in ASCII, ] and } are two after [ and {
	i = SkipSpace(text, i+1)
	if i < len(text) && text[i] == last {
		return i + 1
	}
	for {
		if object {
			if i >= len(text) || text[i] != '"' {
				return -1
			}
			if i = ValidString(text, i); i < 0 {
				return -1
			}
			if i = SkipSpace(text, i); i >= len(text) || text[i] != ':' {
				return -1
			}
			i = SkipSpace(text, i+1)
		}
		if i = ValidValue(text, i, depth+1); i < 0 {
			return -1
		}
		if i = SkipSpace(text, i); i >= len(text) {
			return -1
		}
		switch text[i] {
		case ',':
			i = SkipSpace(text, i+1)
		case last:
			return i + 1
		default:
			return -1
		}
	}
}

// ValidString returns the end of the string whose opening quote is text[i], or -1 if the string is invalid.
func ValidString[T string | []byte](text T, i int) int {
	for i = Plain(text, i+1); i < len(text); i = Plain(text, i) {
		switch {
		case text[i] == '"':
			return i + 1
		case text[i] != '\\' || i+1 >= len(text):
			return -1
		case text[i+1] == 'u':
			if len(text)-i < 6 || !isHex(text[i+2]) || !isHex(text[i+3]) || !isHex(text[i+4]) || !isHex(text[i+5]) {
				return -1
			}
			i += 6
		case strings.IndexByte(`"\/bfnrt`, text[i+1]) < 0:
			return -1
		default:
			i += 2
		}
	}
	return -1
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// ValidNumber returns the end of the number that starts at text[i] with a minus or a digit, or -1 if the
// number is invalid (RFC 8259, section 6).
func ValidNumber[T string | []byte](text T, i int) int {
	digits := func(i int) int { // returns -1 without a digit
		from := i
		for i < len(text) && text[i] >= '0' && text[i] <= '9' {
			i++
		}
		if i == from {
			return -1
		}
		return i
	}
	if text[i] == '-' {
		i++
	}
	if i < len(text) && text[i] == '0' {
		i++
	} else if i = digits(i); i < 0 {
		return -1
	}
	if i < len(text) && text[i] == '.' {
		if i = digits(i + 1); i < 0 {
			return -1
		}
	}
	if i < len(text) && (text[i] == 'e' || text[i] == 'E') {
		i++
		if i < len(text) && (text[i] == '+' || text[i] == '-') {
			i++
		}
		return digits(i)
	}
	return i
}
