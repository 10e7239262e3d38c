// Package repair reads arguments that are almost JSON, and calls that models write in the text
// of their replies.
package repair

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/validate"
)

// How [Object] turned a text into a JSON object; "" if the text was a JSON object.
const (
	// Unquoted: the object was inside a JSON string.
	Unquoted = "unquoted"
	// Trimmed: a fence or other text surrounded it.
	Trimmed = "trimmed"
	// Repaired: its syntax was repaired.
	Repaired = "repaired"
	// Closed: it ended inside a string or a list, which was closed there.
	Closed = v1.RepairClosed
)

// Limits of a text.
const (
	maxBytes = 1 << 20
	maxDepth = 128
)

// gemmaMarked is a string between the marks that Gemma writes for quotes. Some servers leave the
// marks in the arguments.
var gemmaMarked = regexp.MustCompile(`"<\|\\"\|>((?:[^"\\]|\\.)*?)<\|\\"\|>"`)

// Object reads the arguments of a call with as few changes as possible. It tries the unchanged
// text, a JSON string that holds the object, and the object without the text around it. Only
// then [reader] repairs the syntax, which keeps every valid string, number and word. An empty
// text and null count as an empty object.
//
// A text that ends inside a string or a list is closed there. A text that ends inside an escape
// or before a value is an error. If the API marks the reply as cut off (cut), Object closes and
// repairs nothing, because the missing part may matter.
func Object(text string, cut bool) (doc map[string]any, raw json.RawMessage, how string, err error) {
	if trimmed := strings.TrimSpace(text); trimmed == "" || trimmed == "null" {
		return map[string]any{}, json.RawMessage("{}"), "", nil
	}
	if len(text) > maxBytes {
		return nil, nil, "", fmt.Errorf("the arguments have %d bytes: at most %d are read", len(text), maxBytes)
	}
	unmarked := gemmaMarked.ReplaceAllString(text, `"$1"`)
	doc, first := object(unmarked)
	if first == nil {
		if unmarked != text {
			how = Repaired
		}
		return doc, json.RawMessage(unmarked), how, nil
	}
	text = unmarked
	if inner, ok := unquote(text); ok {
		if doc, err := object(inner); err == nil {
			return doc, json.RawMessage(inner), Unquoted, nil
		}
		text = inner
	}
	r, inner, err := within(text)
	if err == nil && !r.ended {
		if doc, err := object(inner); err == nil {
			return doc, json.RawMessage(inner), Trimmed, nil
		}
	}
	switch {
	case cut:
		return nil, nil, "", errors.New("the reply was cut off inside the arguments of the call")
	case errors.Is(err, errEscape):
		return nil, nil, "", err
	case err != nil:
		return nil, nil, "", first
	}
	fixed := r.out.String()
	if doc, err = object(fixed); err != nil || r.ended && len(doc) == 0 {
		return nil, nil, "", first
	}
	how = Repaired
	if r.ended {
		how = Closed
	}
	return doc, json.RawMessage(fixed), how, nil
}

// goesOn matches the continuation of an object that was closed too early: another value or member.
var goesOn = regexp.MustCompile("^\\s*(?:,\\s*(?:[\"'`“]|[\\w$-]+\\s*:)|:)")

// within reads the only object in a text, and returns its part of the text. Two objects are
// ambiguous. An empty one before another is not, because some APIs begin a stream with it.
func within(text string) (*reader, string, error) {
	for {
		start := strings.IndexByte(text, '{')
		if start < 0 {
			return nil, "", errFault
		}
		r := &reader{text: text[start:]}
		if err := r.object(); err != nil {
			return nil, "", err
		}
		inner, rest := r.text[:r.i], r.text[r.i:]
		switch {
		case r.ended:
			return r, inner, nil
		case strings.Contains(rest, "{") && r.out.String() == "{}":
			text = rest
		case strings.Contains(rest, "{") || goesOn.MatchString(rest):
			return nil, "", errFault
		default:
			return r, inner, nil
		}
	}
}

// object reads a JSON object.
func object(text string) (map[string]any, error) {
	doc, err := validate.Decode([]byte(text))
	if err != nil {
		return nil, err
	}
	o, ok := doc.(map[string]any)
	if !ok {
		return nil, errors.New("it is JSON, but not an object")
	}
	return o, nil
}

// unquote returns the text of a JSON string.
func unquote(text string) (string, bool) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, `"`) {
		return "", false
	}
	var inner string
	return inner, json.Unmarshal([]byte(text), &inner) == nil
}

// closing returns the length of the object at the start of a text; -1 if the object has no end.
func closing(text string) int {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}
