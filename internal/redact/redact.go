// Package redact masks secrets: parts of JSON documents by name or place, and secret values wherever they occur.
//
// A rule is a JSON Pointer (RFC 6901), which names one place, or a bare key, which names every member of that name at
// any depth, including in arrays. A pointer token "*" matches every key and every index: /cards/*/number. Names are
// decoded before they are compared ("p\u0061ss" is pass), and are case-sensitive.
//
// A value that a rule names is replaced as a whole, whatever its type, by the string [Mask]. Everything else keeps its
// bytes: the order of keys, the digits of numbers and white space.
//
// Rules also apply to JSON in strings, at any depth, to JSON Lines, to JSON in prose, to texts such as "name: value",
// and to percent-encoded and base64 text.
package redact

import (
	"encoding/json"
	"slices"
	"strconv"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
)

// Mask replaces masked values.
const Mask = "[REDACTED]"

const quotedMask = `"` + Mask + `"`

// JSON returns raw with the values masked that rules name. If no rule matches, it returns raw unchanged; it never
// modifies raw. Invalid JSON, and JSON nested deeper than encoding/json reads (10,000 levels), is masked as a whole.
func JSON(raw json.RawMessage, rules []string) json.RawMessage {
	if len(rules) == 0 {
		return raw
	}
	return New(rules).JSON(raw)
}

// JSON works as the function [JSON], and also masks the values of the masker.
func (m *Masker) JSON(raw json.RawMessage) json.RawMessage {
	if m.Empty() || len(raw) == 0 {
		return raw
	}
	if !jsontext.Valid(raw) {
		return json.RawMessage(quotedMask)
	}
	return m.document(raw, 0)
}

// document masks valid JSON.
func (m *Masker) document(raw []byte, depth int) []byte {
	w := walker{Masker: m, splice: splice[[]byte]{src: raw}, depth: depth}
	w.value(w.space(0), m.rules.pointers)
	return w.done()
}

// Covers reports whether a rule masks the value at a JSON Pointer, or something that
// contains it.
func Covers(rules []string, pointer string) bool {
	_, ok := New(rules).covered(pointer)
	return ok
}

type parsed struct {
	names    names
	pointers [][]string
}

func (p parsed) empty() bool { return len(p.names) == 0 && len(p.pointers) == 0 }

func parse(rules []string) parsed {
	var p parsed
	for _, r := range rules {
		switch {
		case r == "":
		case r[0] == '/':
			p.pointers = append(p.pointers, v1.Tokens(r))
		default:
			p.names = append(p.names, r)
		}
	}
	return p
}

type names []string

// step descends one token: it returns the remainders of the matching pointers, and
// whether a rule ends there.
func (n names) step(pointers [][]string, token string, isKey bool) (rest [][]string, hit bool) {
	if isKey {
		if slices.Contains(n, token) {
			return nil, true
		}
	}
	for _, p := range pointers {
		if p[0] != token && p[0] != "*" {
			continue
		}
		if len(p) == 1 {
			return nil, true
		}
		rest = append(rest, p[1:])
	}
	return rest, false
}

// splice replaces parts of a text, and copies it only if there are any.
type splice[T string | []byte] struct {
	src    T
	out    []byte
	copied int // src[:copied] is done: it was copied to out or replaced
}

// put replaces src[from:to].
func (s *splice[T]) put(from, to int, text T) {
	s.out = append(append(s.out, s.src[s.copied:from]...), text...)
	s.copied = to
}

// done returns the result.
func (s *splice[T]) done() T {
	if s.copied == 0 {
		return s.src
	}
	return T(append(s.out, s.src[s.copied:]...))
}

// walker walks valid JSON.
type walker struct {
	*Masker
	splice[[]byte]
	depth int               // depth of documents nested in strings
	hit   func(part []byte) // called with each value that a rule names; may be nil
}

// value walks the value that starts at i and returns its end.
func (w *walker) value(i int, pointers [][]string) int {
	switch w.src[i] {
	case '{':
		return w.members(i, pointers)
	case '[':
		return w.items(i, pointers)
	case '"':
		end := w.skip(i)
		w.str(i, end)
		return end
	}
	end := w.skip(i)
	if w.isNumber(string(w.src[i:end])) {
		w.put(i, end, []byte(quotedMask))
	}
	return end
}

// str masks inside the string or the name at src[from:to].
func (w *walker) str(from, to int) {
	s := jsontext.Unquote(w.src[from:to])
	if masked := w.text(s, w.depth+1); masked != s {
		w.put(from, to, jsontext.Quote(masked))
	}
}

func (w *walker) members(i int, pointers [][]string) int {
	for i = w.space(i + 1); w.src[i] != '}'; {
		end := w.skip(i)
		key := jsontext.Unquote(w.src[i:end])
		w.str(i, end)
		i = w.space(w.space(end) + 1) // skip the colon
		i = w.child(i, pointers, key, true)
		if i = w.space(i); w.src[i] == ',' {
			i = w.space(i + 1)
		}
	}
	return i + 1
}

func (w *walker) items(i int, pointers [][]string) int {
	index := 0
	for i = w.space(i + 1); w.src[i] != ']'; index++ {
		token := ""
		if len(pointers) > 0 {
			token = strconv.Itoa(index)
		}
		i = w.child(i, pointers, token, false)
		if i = w.space(i); w.src[i] == ',' {
			i = w.space(i + 1)
		}
	}
	return i + 1
}

func (w *walker) child(i int, pointers [][]string, token string, isKey bool) int {
	rest, hit := w.rules.names.step(pointers, token, isKey)
	if !hit {
		return w.value(i, rest)
	}
	end := w.skip(i)
	if w.hit != nil {
		w.hit(w.src[i:end])
	}
	w.put(i, end, []byte(quotedMask))
	return end
}

// skip returns the end of the value that starts at i.
func (w *walker) skip(i int) int { return jsontext.SkipValue(w.src, i) }

func (w *walker) space(i int) int { return jsontext.SkipSpace(w.src, i) }
