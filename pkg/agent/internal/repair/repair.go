// Package repair reads what models write where JSON was asked of them: arguments that
// are nearly JSON, and calls that stand in the text.
package repair

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kaptinlin/jsonrepair"

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

// Bounds of the texts that are repaired. The library takes time that grows with the
// product of a text's length and its number of marks, and recurses with its depth.
const (
	maxBytes  = 1 << 20
	maxDepth  = 128
	maxWeight = 64 << 20
)

// gemmaMark stands for the quotes of a string in what Gemma writes. Some servers leave it in
// the texts of the arguments that they make of it.
const gemmaMark = `<|\"|>`

// Object reads the arguments of a call. It changes as little as it can: the text as it
// is, a JSON string that holds the object, the object without what stands around it,
// and only then its syntax. Nothing at all, and null, is an empty object.
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
	unmarked := strings.ReplaceAll(text, gemmaMark, "")
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
	inner, ok := trim(text)
	if ok {
		if doc, err := object(inner); err == nil {
			return doc, json.RawMessage(inner), Trimmed, nil
		}
	}
	if cut {
		return nil, nil, "", errors.New("the reply was cut off before its end, in the arguments of the call")
	}
	how = Repaired
	if ok && closing(inner) < 0 {
		how = Closed
		whole, ok, err := closed(inner)
		if err != nil {
			return nil, nil, "", err
		}
		if doc, err := object(whole); ok && err == nil && len(doc) > 0 {
			return doc, json.RawMessage(whole), Closed, nil
		}
	}
	for _, candidate := range []string{inner, text} {
		if doc, raw, ok := repair(candidate); ok {
			return doc, raw, how, nil
		}
	}
	return nil, nil, "", first
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

// trim returns the one object that stands in a text. Where two stand, nobody knows
// which is meant; but an empty one before another is how some APIs begin a stream.
func trim(text string) (string, bool) {
	start := strings.IndexByte(text, '{')
	if start < 0 {
		return "", false
	}
	end := closing(text[start:])
	if end < 0 {
		return text[start:], true
	}
	one, rest := text[start:start+end], text[start+end:]
	if strings.IndexByte(rest, '{') < 0 {
		return one, true
	}
	if strings.TrimSpace(strings.Trim(one, "{}")) == "" {
		return trim(rest)
	}
	return "", false
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

// repair repairs the syntax of a text that is to be an object.
func repair(text string) (doc map[string]any, raw json.RawMessage, ok bool) {
	defer func() {
		if recover() != nil { // foreign text must not end the process through the library
			doc, raw, ok = nil, nil, false
		}
	}()
	// What has no brace would become a string, or an object that nobody wrote.
	if !strings.Contains(text, "{") || !bearable(text) {
		return nil, nil, false
	}
	// What ends inside an escape or a word has lost what nobody knows.
	if closing(text) < 0 && (cutEscape.MatchString(text) || cutWord.MatchString(text)) {
		return nil, nil, false
	}
	fixed, err := jsonrepair.Repair(text)
	if err != nil {
		return nil, nil, false
	}
	if doc, err = object(fixed); err != nil || len(doc) == 0 || !nullsIn(text) && hasNull(doc) {
		return nil, nil, false // a value that is missing is not one that is null
	}
	return doc, json.RawMessage(fixed), true
}

// nullsIn reports whether a text has a word that may be null.
func nullsIn(text string) bool {
	for _, word := range []string{"null", "None", "undefined", "NaN", "nil"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

func hasNull(doc any) bool {
	switch v := doc.(type) {
	case nil:
		return true
	case map[string]any:
		for _, one := range v {
			if hasNull(one) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasNull)
	}
	return false
}

// bearable reports whether the library reads a text in bounded time and depth.
func bearable(text string) bool {
	marks, depth := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '{', '[', '(':
			marks++
			depth++
		case '}', ']', ')':
			marks++
			depth = max(0, depth-1)
		case '"', '\'', '`', ':', ',', '\\', '/', '+', '\n', '*':
			marks++
		default:
			if text[i] >= 0x80 { // typographic quotes and spaces are marks too
				marks++
			}
		}
		if depth > maxDepth {
			return false
		}
	}
	return marks*len(text) <= maxWeight
}
