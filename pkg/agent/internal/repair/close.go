package repair

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

var errEscape = errors.New("it ends inside an escape or a character: what was cut off there is not known")

// cutEscape is the end of a text that stops inside an escape, or between the two halves
// of a character that JSON escapes as a pair.
var cutEscape = regexp.MustCompile(`(?:^|[^\\])(?:\\\\)*(?:\\|\\u[0-9a-fA-F]{0,3}|\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\|\\u[0-9a-fA-F]{0,3})?)$`)

// cutWord is the end of a text that stops inside a word of JSON or Python, or inside a number
// where no number ends: at its sign, its point or its exponent.
var cutWord = regexp.MustCompile(`[:,\[]\s*(?:t|tr|tru|f|fa|fal|fals|n|nu|nul|T|Tr|Tru|F|Fa|Fal|Fals|N|No|Non|[-+]|[-+]?[0-9]*\.|[-+]?[0-9]+(?:\.[0-9]*)?[eE][-+]?)$`)

// closed ends an object that was cut off inside a string or a list: each is closed where
// the text ends. ok is false where more than closing would be needed, such as a value
// that is missing. The error says that the end cannot be known.
func closed(text string) (whole string, ok bool, err error) {
	quoted, key, expectKey := false, false, false
	var open []byte // what closes the lists and objects around
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quoted && c == '\\':
			i++
		case quoted:
			quoted = c != '"'
		case c == '"':
			quoted, key = true, expectKey
		case c == '{':
			open, expectKey = append(open, '}'), true
		case c == '[':
			open, expectKey = append(open, ']'), false
		case c == ':':
			expectKey = false
		case c == ',':
			expectKey = len(open) > 0 && open[len(open)-1] == '}'
		case c == '}' || c == ']':
			if len(open) == 0 || open[len(open)-1] != c {
				return "", false, nil
			}
			open, expectKey = open[:len(open)-1], false
		}
		if len(open) > maxDepth {
			return "", false, nil
		}
	}
	if len(open) == 0 {
		return "", false, nil
	}
	whole = text
	if quoted {
		if cutEscape.MatchString(text) || !utf8.ValidString(text) {
			return "", false, errEscape
		}
		// An end that looks whole was not cut off: a quote is escaped that should not be.
		if end := strings.TrimRight(text, " \t\r\n}]"); key || len(end) < len(text) && strings.HasSuffix(end, `"`) {
			return "", false, nil
		}
		whole += `"`
	} else {
		whole = strings.TrimSuffix(strings.TrimRight(whole, " \t\r\n"), ",")
	}
	for _, o := range slices.Backward(open) {
		whole += string(o)
	}
	return whole, true, nil
}
