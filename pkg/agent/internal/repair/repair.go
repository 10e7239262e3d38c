// Package repair reads what models write where JSON was asked of them: arguments that
// are nearly JSON, and calls that stand in the text.
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

// How a text became a JSON object; empty when it was one.
const (
	// Unquoted: the object was written as a JSON string.
	Unquoted = "unquoted"
	// Trimmed: a fence or other text stood around it.
	Trimmed = "trimmed"
	// Repaired: its syntax was repaired.
	Repaired = "repaired"
	// Closed: it was cut off inside a string or a list, which was closed where it ended.
	Closed = v1.RepairClosed
)

// Bounds of the texts that are repaired.
const (
	maxBytes = 1 << 20
	maxDepth = 128
)

// gemmaMarked is a string between the marks that stand for quotes in what Gemma writes. Some servers
// leave them in the arguments that they make of it.
var gemmaMarked = regexp.MustCompile(`"<\|\\"\|>((?:[^"\\]|\\.)*?)<\|\\"\|>"`)

// Object reads the arguments of a call. It changes as little as it can: the text as it
// is, a JSON string that holds the object, the object without what stands around it,
// and only then its syntax, by [reader], which changes no string, number or word that is valid.
// Nothing at all, and null, is an empty object.
//
// What ends inside a string or a list is closed there. What ends inside an escape, or
// where a value is missing, is an error. cut says that the API marks the model's reply
// as cut off: then nothing is closed or repaired, as what is missing may matter.
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
		return nil, nil, "", errors.New("the reply was cut off before its end, in the arguments of the call")
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

// goesOn is what follows an object that was closed too early: another value or member of it.
var goesOn = regexp.MustCompile("^\\s*(?:,\\s*(?:[\"'`“]|[\\w$-]+\\s*:)|:)")

// within reads the one object that stands in a text, and returns the part of the text that it is.
// Where two stand, nobody knows which is meant; but an empty one before another is how some APIs
// begin a stream.
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

// object reads a text that is a JSON object.
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

// unquote returns what a JSON string holds.
func unquote(text string) (string, bool) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, `"`) {
		return "", false
	}
	var inner string
	return inner, json.Unmarshal([]byte(text), &inner) == nil
}

// closing returns the length of the object that a text begins with; -1 when it has no end.
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
