// Package jsontext writes JSON for people and models, without the escapes that only HTML
// needs, and finds the ends of strings and values in a JSON text.
package jsontext

import (
	"bytes"
	"encoding/json"
)

// Marshal is [json.Marshal] that leaves <, > and & as they are.
func Marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	if err := Write(&b, v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Write appends the output of [Marshal]. An error leaves the buffer unchanged.
func Write(b *bytes.Buffer, v any) error {
	before := b.Len()
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		b.Truncate(before)
		return err
	}
	b.Truncate(b.Len() - 1) // remove the line end that the encoder adds
	return nil
}

// Of is [Marshal] for a value that was read from JSON and can therefore be encoded. Any other value
// becomes null.
func Of(v any) json.RawMessage {
	text, err := Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return text
}

// Quote returns a text as a JSON string.
func Quote(s string) json.RawMessage {
	var b bytes.Buffer
	b.Grow(len(s) + 2)
	AppendString(&b, s)
	return b.Bytes()
}

// Space holds the characters that may stand between the tokens of a JSON text.
const Space = " \t\r\n"

// SkipString returns the end of the string whose opening quote is text[i]: the place after
// its closing quote, or the end of the text if there is none.
func SkipString[T string | []byte](text T, i int) int {
	for i = Plain(text, i+1); i < len(text); i = Plain(text, i) {
		switch text[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
		i++
	}
	return len(text)
}

// SkipValue returns the end of the value that starts at text[i], which must not be a space; for an
// incomplete value, the end of the text. It does not check the inside of the value.
func SkipValue[T string | []byte](text T, i int) int {
	depth := 0
	for ; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = SkipString(text, i) - 1
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return i // end of a number or a word
			} else if depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
		}
	}
	return len(text)
}
