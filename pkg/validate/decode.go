package validate

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/jsontext"
)

// Bounds of one JSON text. They are far above the size of a tool call and low enough that no text takes
// more than about 200 MB or one second to read.
const (
	// MaxDocumentBytes is the maximum length of a text that [Decode] reads.
	MaxDocumentBytes = 16 << 20
	// MaxDepth is the maximum nesting of arrays and objects.
	MaxDepth = 256
	// MaxValues is the maximum number of values in a text, including nested values.
	MaxValues = 500_000
)

// Decode reads one JSON text (RFC 8259) into nil, bool, string, [json.Number],
// []any and map[string]any, the form that [Schema] checks. Numbers keep every
// digit.
//
// It is stricter than encoding/json where laxness hides violations or costs
// memory: text after the value, invalid UTF-8, an object that names a member
// twice, numbers beyond the range of a double (see [checkNumber]) and texts beyond
// [MaxDocumentBytes], [MaxDepth] or [MaxValues] are errors. An escaped lone
// surrogate is read as U+FFFD, as encoding/json does.
func Decode(raw []byte) (any, error) { return decode(raw, MaxDocumentBytes) }

func decode(raw []byte, maxBytes int) (any, error) {
	if len(raw) > maxBytes {
		return nil, &DecodeError{what: fmt.Sprintf("JSON text of %d bytes is too large: at most %d", len(raw), maxBytes)}
	}
	if !utf8.Valid(raw) {
		return nil, &DecodeError{Syntax: true, what: "the text is not UTF-8"}
	}
	d := decoder{raw: raw, text: string(raw), share: len(raw) <= 64<<10}
	v, err := d.value(0)
	if err != nil {
		return nil, err
	}
	if d.space(); d.pos < len(d.text) {
		return nil, d.errorf("text after the value")
	}
	return v, nil
}

type decoder struct {
	raw    []byte
	text   string // the same text as a string
	pos    int
	values int
	// share makes decoded strings slices of text. Any of them keeps the whole text in memory, which is
	// cheap for a small text and expensive for a large one.
	share bool
}

// DecodeError is the reason why [Decode] refuses a text.
type DecodeError struct {
	// Syntax is true if the text is not JSON, and false if it is JSON beyond the bounds of [Decode].
	Syntax bool
	line   int // from 1; 0 for the whole text
	column int
	what   string
}

func (e *DecodeError) Error() string {
	place := ""
	if e.line > 0 {
		place = fmt.Sprintf("at line %d, column %d", e.line, e.column)
	}
	if e.Syntax {
		place = strings.TrimSuffix("invalid JSON "+place, " ")
	}
	return strings.TrimPrefix(place+": "+e.what, ": ")
}

// Undecoded returns a sentence about a text that [Decode] refuses, which begins with a subject such as
// "the arguments are", and a description of the text found instead of JSON.
func Undecoded(subject string, err error) (message, got string) {
	if e := (*DecodeError)(nil); errors.As(err, &e) && !e.Syntax {
		return subject + " not usable: " + err.Error(), e.what
	}
	return subject + " not JSON: " + err.Error(), "text that is not valid JSON"
}

// errorf returns a syntax error at the decoder's position; refuse returns an error for JSON beyond the
// bounds.
func (d *decoder) errorf(format string, args ...any) error {
	return d.fail(true, format, args...)
}

func (d *decoder) refuse(format string, args ...any) error {
	return d.fail(false, format, args...)
}

func (d *decoder) fail(syntax bool, format string, args ...any) error {
	pos := min(d.pos, len(d.text))
	line := 1 + strings.Count(d.text[:pos], "\n")
	column := 1 + utf8.RuneCountInString(d.text[strings.LastIndexByte(d.text[:pos], '\n')+1:pos])
	return &DecodeError{Syntax: syntax, line: line, column: column, what: fmt.Sprintf(format, args...)}
}

func (d *decoder) space() { d.pos = jsontext.SkipSpace(d.text, d.pos) }

// next skips white space and returns the next byte without consuming it, or 0 at the end.
func (d *decoder) next() byte {
	d.space()
	if d.pos == len(d.text) {
		return 0
	}
	return d.text[d.pos]
}

func (d *decoder) value(depth int) (any, error) {
	if d.values++; d.values > MaxValues {
		return nil, d.refuse("more than %d values", MaxValues)
	}
	switch c := d.next(); {
	case c == '{':
		return d.object(depth + 1)
	case c == '[':
		return d.array(depth + 1)
	case c == '"':
		return d.string()
	case c == '-' || c >= '0' && c <= '9':
		return d.number()
	case c == 't' && d.word("true"):
		return true, nil
	case c == 'f' && d.word("false"):
		return false, nil
	case c == 'n' && d.word("null"):
		return nil, nil
	case c == 0 && d.pos == len(d.text):
		return nil, d.errorf("expected a value, got the end of the text")
	}
	r, _ := utf8.DecodeRuneInString(d.text[d.pos:])
	return nil, d.errorf("expected a value, got %q", r)
}

func (d *decoder) word(w string) bool {
	if !strings.HasPrefix(d.text[d.pos:], w) {
		return false
	}
	d.pos += len(w)
	return true
}

func (d *decoder) object(depth int) (any, error) {
	if depth > MaxDepth {
		return nil, d.refuse("nested deeper than %d levels", MaxDepth)
	}
	d.pos++
	m := map[string]any{}
	if d.next() == '}' {
		d.pos++
		return m, nil
	}
	for {
		if d.next() != '"' {
			return nil, d.errorf("expected a member name in double quotes")
		}
		start := d.pos
		key, err := d.string()
		if err != nil {
			return nil, err
		}
		if d.next() != ':' {
			return nil, d.errorf("expected ':' after the member name")
		}
		d.pos++
		v, err := d.value(depth)
		if err != nil {
			return nil, err
		}
		before := len(m)
		if m[key] = v; len(m) == before {
			d.pos = start
			return nil, d.refuse("member %q is given twice", clip.Runes(key, 60))
		}
		switch d.next() {
		case ',':
			d.pos++
		case '}':
			d.pos++
			return m, nil
		default:
			return nil, d.errorf("expected ',' or '}' in an object")
		}
	}
}

func (d *decoder) array(depth int) (any, error) {
	if depth > MaxDepth {
		return nil, d.refuse("nested deeper than %d levels", MaxDepth)
	}
	d.pos++
	items := []any{}
	if d.next() == ']' {
		d.pos++
		return items, nil
	}
	for {
		v, err := d.value(depth)
		if err != nil {
			return nil, err
		}
		items = append(items, v)
		switch d.next() {
		case ',':
			d.pos++
		case ']':
			d.pos++
			return items, nil
		default:
			return nil, d.errorf("expected ',' or ']' in an array")
		}
	}
}

func (d *decoder) slice(from, to int) string {
	if d.share {
		return d.text[from:to]
	}
	return strings.Clone(d.text[from:to])
}

func (d *decoder) number() (any, error) {
	start := d.pos
	for d.pos < len(d.text) {
		switch c := d.text[d.pos]; {
		case c >= '0' && c <= '9', c == '+', c == '-', c == '.', c == 'e', c == 'E':
			d.pos++
			continue
		}
		break
	}
	s := d.slice(start, d.pos)
	if err := checkNumber(s); err != nil {
		d.pos = start
		return nil, d.fail(errors.Is(err, errNumberSyntax), "%v", err)
	}
	return json.Number(s), nil
}

func (d *decoder) string() (string, error) {
	start := d.pos
	if end := jsontext.Plain(d.text, start+1); end < len(d.text) && d.text[end] == '"' {
		d.pos = end + 1
		return d.slice(start+1, end), nil
	}
	end := jsontext.ValidString(d.text, start)
	if end < 0 {
		return "", d.badString()
	}
	d.pos = end
	return jsontext.Unquote(d.raw[start:end]), nil
}

// badString returns the error in the string at the decoder's position, and moves to the error.
func (d *decoder) badString() error {
	for d.pos = jsontext.Plain(d.text, d.pos+1); d.pos < len(d.text); d.pos = jsontext.Plain(d.text, d.pos) {
		if d.text[d.pos] != '\\' {
			return d.errorf("control character %q in a string", d.text[d.pos])
		}
		size := 2
		if strings.HasPrefix(d.text[d.pos:], `\u`) {
			size = 6
		}
		escape := d.text[d.pos:min(d.pos+size, len(d.text))]
		if jsontext.ValidString(`"`+escape+`"`, 0) < 0 {
			return d.errorf("invalid escape in a string")
		}
		d.pos += size
	}
	return d.errorf("string without its closing quote")
}
