package template

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"toolctl.dev/toolctl/internal/jsontext"
)

// JSON is a template for JSON. It is safe for concurrent use.
type JSON struct{ *tree }

// ParseJSON reads a template; name is its name in messages, such as its field in a
// manifest. Errors are of type *[Error].
func ParseJSON(name, src string) (*JSON, error) {
	t, err := parseTree(name, src)
	if err != nil {
		return nil, err
	}
	return &JSON{t}, nil
}

// ParseLenient is [ParseJSON] for templates that were written for text/template: like text/template, it prints missing
// and null values as "<no value>" inside a JSON string. Outside of strings they are null.
func ParseLenient(name, src string) (*JSON, error) {
	t, err := ParseJSON(name, src)
	if err != nil {
		return nil, err
	}
	t.lenient = true
	return t, nil
}

// Render renders the template with the arguments, which it does not change. Errors
// are of type *[Error], which wraps errors of ctx. If the output is not JSON,
// [Error.Output] contains it.
func (t *JSON) Render(ctx context.Context, args map[string]any) (json.RawMessage, error) {
	enc := jsonEncoding{lenient: t.lenient}
	out, err := t.render(ctx, args, &enc)
	if err != nil {
		return nil, err
	}
	out = bytes.TrimSpace(out)
	if err := checkJSON(out, enc.keyed); err != nil {
		return nil, &Error{Name: t.name, Message: err.Error(), Output: out}
	}
	return out, nil
}

// jsonEncoding scans the output as a JSON lexer (RFC 8259) does, to find out whether a value is inside a string.
type jsonEncoding struct {
	inString bool
	// slash and hex report an incomplete escape sequence: slash that its letter is missing, hex how many digits are
	// missing.
	slash bool
	hex   int
	// rendered reports that the last token contains a value, and keyed that such a token became a key.
	rendered, keyed bool
	// lenient is the setting of the tree.
	lenient bool
}

func (e *jsonEncoding) literal(text []byte) {
	for _, c := range text {
		switch {
		case e.slash:
			e.slash = false
			if c == 'u' {
				e.hex = 4
			}
		case e.hex > 0:
			e.hex--
		case c == '"':
			e.inString = !e.inString
		case e.inString:
			e.slash = c == '\\'
		case c == ':':
			e.keyed = e.keyed || e.rendered
			e.rendered = false
		case c == ',' || c == '{' || c == '[' || c == '}' || c == ']':
			e.rendered = false
		}
	}
}

func (e *jsonEncoding) value(out []byte, v value) ([]byte, error) {
	if e.slash || e.hex > 0 {
		return out, errors.New("a value is in the middle of an escape sequence")
	}
	if v.kind == isNull || v.kind == isMissing {
		switch {
		case !e.inString:
			v = value{kind: isJSON, text: "null"}
		case e.lenient:
			v = value{kind: isString, text: noValue}
		default:
			return out, errNull
		}
	}
	e.rendered = true
	switch {
	case e.inString:
		return appendEscaped(out, v.text), nil
	case v.kind == isString:
		return append(out, jsontext.Quote(v.text)...), nil
	}
	return append(out, v.text...), nil
}

// noValue is the text that text/template prints for a missing or null value.
const noValue = "<no value>"

// appendEscaped appends text as the inside of a JSON string (RFC 8259, section
// 7). Invalid UTF-8 becomes U+FFFD, as in encoding/json.
func appendEscaped(out []byte, text string) []byte {
	quoted := jsontext.Quote(text)
	return append(out, quoted[1:len(quoted)-1]...)
}

// checkJSON returns an error if a text is not a JSON value. With keys it also refuses
// duplicate keys: an argument that is rendered as a key could otherwise replace another
// field.
func checkJSON(text []byte, keys bool) error {
	if len(text) == 0 {
		return errors.New("the template rendered nothing: expected JSON")
	}
	if !json.Valid(text) {
		var doc any
		err := json.Unmarshal(text, &doc)
		var syntax *json.SyntaxError
		if !errors.As(err, &syntax) {
			return errors.New("the rendered text is not JSON")
		}
		before := text[:min(int(max(syntax.Offset-1, 0)), len(text))]
		line := 1 + bytes.Count(before, []byte("\n"))
		column := 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
		return fmt.Errorf("the rendered text is not JSON: %w at its line %d, column %d", err, line, column)
	}
	if !keys {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	return checkKeys(dec)
}

// errDuplicateKey is the error for JSON that repeats a key of an object.
var errDuplicateKey = errors.New("the rendered text has a duplicate key in an object")

// checkKeys refuses duplicate keys in JSON that json.Valid has accepted, which also limits the depth.
func checkKeys(dec *json.Decoder) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	delim, _ := token.(json.Delim)
	seen := map[json.Token]bool{}
	for delim != 0 && dec.More() {
		if delim == '{' {
			key, err := dec.Token()
			if err != nil {
				return err
			}
			if seen[key] {
				return errDuplicateKey
			}
			seen[key] = true
		}
		if err := checkKeys(dec); err != nil {
			return err
		}
	}
	if delim != 0 {
		_, err = dec.Token()
	}
	return err
}
