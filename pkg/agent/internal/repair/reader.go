package repair

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"toolctl.dev/toolctl/internal/jsontext"
)

var (
	errEscape = errors.New("it ends inside an escape or a character, and the missing part is unknown")
	errFault  = errors.New("it has a syntax error that can be read in more than one way")
)

// reader reads an object that is almost JSON and writes it as JSON. It copies every valid string, number and word, and
// repairs these errors, which have only one possible meaning: comments, a comma after the last value, a missing comma
// between two values, keys without quotes, strings in other quotes, control characters and unknown escapes in strings,
// words of Python, numbers such as +1 and .5, a missing closing bracket, and a string that ends with the text. It
// never guesses: any other error is returned.
type reader struct {
	text  string
	i     int
	out   strings.Builder
	open  []byte // the closing brackets of the enclosing lists and objects, the innermost last
	ended bool   // the text ended before the object did
}

// object reads the object that begins at text[i].
func (r *reader) object() error { return r.members('}') }

// members reads a list or an object from its opening bracket.
func (r *reader) members(closer byte) error {
	if len(r.open) == maxDepth {
		return errFault
	}
	r.out.WriteByte(r.text[r.i])
	r.i++
	r.open = append(r.open, closer)
	defer func() { r.open = r.open[:len(r.open)-1] }()
	for first, wanted, nested := true, true, false; ; first = false {
		if err := r.space(); err != nil {
			return err
		}
		if !first && r.peek() == ',' {
			r.i++
			wanted = true
			if err := r.space(); err != nil {
				return err
			}
		}
		switch c := r.peek(); {
		case c == 0:
			r.ended = true
			r.out.WriteByte(closer)
			return nil
		case c == closer:
			r.i++
			r.out.WriteByte(c)
			return nil
		case c == '}' || c == ']': // the closing bracket before this one is missing
			if !slices.Contains(r.open[:len(r.open)-1], c) {
				return errFault
			}
			r.out.WriteByte(closer)
			return nil
		case !wanted && !(nested || strings.ContainsRune(" \t\r\n", rune(r.text[r.i-1]))):
			return errFault
		case !wanted && closer == ']' && c != '{' && c != '[' && r.quote() == "": // "1 000" may be one number
			return errFault
		}
		if !first {
			r.out.WriteByte(',')
		}
		if closer == '}' {
			if err := r.key(); err != nil {
				return err
			}
		}
		c := r.peek()
		if err := r.value(); err != nil {
			return err
		}
		wanted, nested = false, c == '{' || c == '['
	}
}

// peek returns the next byte; 0 at the end of the text or of its fence.
func (r *reader) peek() byte {
	if r.i == len(r.text) || strings.HasPrefix(r.text[r.i:], "```") {
		return 0
	}
	return r.text[r.i]
}

// space skips space and comments.
func (r *reader) space() error {
	for r.i < len(r.text) {
		rest := r.text[r.i:]
		switch c, n := utf8.DecodeRuneInString(rest); {
		case unicode.IsSpace(c) || c == '\ufeff':
			r.i += n
		case c == '#' || strings.HasPrefix(rest, "//"):
			if n = strings.IndexByte(rest, '\n'); n < 0 {
				n = len(rest)
			}
			r.i += n
		case strings.HasPrefix(rest, "/*"):
			if n = strings.Index(rest, "*/"); n < 0 {
				return errFault
			}
			r.i += n + 2
		default:
			return nil
		}
	}
	return nil
}

// key reads a key, the colon, and the space before the value.
func (r *reader) key() error {
	if quote := r.quote(); quote != "" {
		if err := r.string(quote, true); err != nil {
			return err
		}
	} else {
		word := r.word(func(c rune) bool {
			return c == '_' || c == '$' || c == '-' || unicode.IsLetter(c) || unicode.IsDigit(c)
		})
		if word == "" {
			return errFault
		}
		r.out.Write(jsontext.Of(word))
	}
	if err := r.space(); err != nil {
		return err
	}
	if r.peek() != ':' {
		return errFault
	}
	r.i++
	r.out.WriteByte(':')
	return r.space()
}

// words are the words of JSON and Python.
var words = map[string]string{"true": "true", "false": "false", "null": "null", "True": "true", "False": "false", "None": "null"}

func (r *reader) value() error {
	switch c := r.peek(); c {
	case 0:
		return errFault
	case '{':
		return r.members('}')
	case '[':
		return r.members(']')
	}
	if quote := r.quote(); quote != "" {
		return r.string(quote, false)
	}
	word := r.word(func(c rune) bool {
		return strings.ContainsRune("_$-+.", c) || unicode.IsLetter(c) || unicode.IsDigit(c)
	})
	if known := words[word]; known != "" {
		r.out.WriteString(known)
		return nil
	}
	word = strings.TrimPrefix(word, "+")
	sign := ""
	if rest, ok := strings.CutPrefix(word, "-"); ok {
		sign, word = "-", rest
	}
	if strings.HasPrefix(word, ".") {
		word = "0" + word
	}
	if word == "" || word[0] < '0' || word[0] > '9' || jsontext.ValidNumber([]byte(word), 0) != len(word) {
		return errFault
	}
	r.out.WriteString(sign + word)
	return nil
}

// word reads characters as long as they belong to the word.
func (r *reader) word(belongs func(rune) bool) string {
	rest := r.text[r.i:]
	n := strings.IndexFunc(rest, func(c rune) bool { return !belongs(c) })
	if n < 0 {
		n = len(rest)
	}
	r.i += n
	return rest[:n]
}

// quotes are pairs of quotes that open and close a string.
var quotes = [][2]string{{`"`, `"`}, {"'", "'"}, {"`", "`"}, {"“", "”"}}

// quote returns the closing quote of a string that begins here; "" if no string begins here.
func (r *reader) quote() string {
	for _, q := range quotes {
		if strings.HasPrefix(r.text[r.i:], q[0]) {
			return q[1]
		}
	}
	return ""
}

// highHalf matches a string that ends with the first half of a surrogate pair.
var highHalf = regexp.MustCompile(`\\u[dD][89abAB][0-9a-fA-F]{2}$`)

// string reads a string from its opening quote. A key without an end is an error.
func (r *reader) string(quote string, key bool) error {
	_, n := utf8.DecodeRuneInString(r.text[r.i:])
	r.i += n
	start := r.out.Len()
	r.out.WriteByte('"')
	known, unknown := 0, 0 // number of known and unknown escapes
	for r.i < len(r.text) {
		c := r.text[r.i]
		switch {
		case strings.HasPrefix(r.text[r.i:], quote):
			r.i += len(quote)
			r.out.WriteByte('"')
			if known > 0 && unknown > 0 { // the known escapes may be unescaped backslashes, too
				return errFault
			}
			return nil
		case c == '\\':
			escape, ok := r.escape()
			switch {
			case escape == "":
				return errEscape
			case !ok:
				unknown++
			case escape != `\"` && escape != "'" && escape != "`":
				known++
			}
			r.out.WriteString(escape)
		case c == '"':
			r.out.WriteString(`\"`)
			r.i++
		case c < ' ':
			quoted := jsontext.Of(string(c))
			r.out.Write(quoted[1 : len(quoted)-1])
			r.i++
		default:
			r.out.WriteByte(c)
			r.i++
		}
	}
	r.ended = true
	whole := r.out.String()[start:]
	if highHalf.MatchString(whole) || !utf8.ValidString(whole) {
		return errEscape
	}
	if key || known > 0 && unknown > 0 || r.looksWhole() {
		return errFault
	}
	r.out.WriteByte('"')
	return nil
}

// looksWhole reports whether a text that ends inside a string ends with the brackets of the object.
// Then only the closing quote may be missing, at an unknown place.
func (r *reader) looksWhole() bool {
	end := strings.TrimRight(r.text, " \t\r\n`")
	if len(r.text)-len(end) >= len("```") && strings.HasSuffix(strings.TrimSpace(r.text), "```") {
		return true
	}
	for i := range r.open {
		rest, ok := strings.CutSuffix(end, string(r.open[i]))
		if !ok {
			return false
		}
		end = strings.TrimRight(rest, " \t\r\n")
	}
	return true
}

// escape reads an escape and returns it in JSON; "" if the text ends in it. An unknown escape counts
// as an unescaped backslash.
func (r *reader) escape() (text string, known bool) {
	rest := r.text[r.i+1:]
	if rest == "" {
		return "", false
	}
	switch c := rest[0]; c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		r.i += 2
		return `\` + rest[:1], true
	case '\'', '`':
		r.i += 2
		return rest[:1], true
	case 'u':
		digits := rest[1:min(len(rest), 5)]
		hex := strings.Trim(digits, "0123456789abcdefABCDEF") == ""
		if hex && len(digits) < 4 && len(rest) == 1+len(digits) {
			return "", false
		}
		if hex && len(digits) == 4 {
			r.i += 6
			return `\u` + digits, true
		}
	}
	r.i++
	return `\\`, false
}
