// Package redact masks parts of JSON documents that nobody should read.
//
// A rule is a JSON pointer (RFC 6901), which names one place, or a bare key name,
// which names every member of that name at any depth, in arrays too. A pointer token
// "*" stands for every key and every index: /cards/*/number. Names compare as
// they are decoded, so "p\u0061ss" is pass, and case matters.
//
// What a rule names is replaced as a whole, whatever its kind, by the string
// [Mask]. All else keeps its bytes: the order of keys, the digits of numbers and the space between.
package redact

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// Mask stands where something was taken out.
const Mask = "[REDACTED]"

const quotedMask = `"` + Mask + `"`

// JSON returns raw with what the rules name masked. Without a match it returns
// raw itself; raw is never changed. What is not JSON, or is nested deeper than
// encoding/json reads (10,000 levels), is masked as a whole.
func JSON(raw json.RawMessage, rules []string) json.RawMessage {
	p := parse(rules)
	if p.empty() || len(raw) == 0 {
		return raw
	}
	if !json.Valid(raw) {
		return json.RawMessage(quotedMask)
	}
	m := masker{src: raw, names: p.names}
	m.value(m.space(0), p.pointers)
	if m.out == nil {
		return raw
	}
	return append(m.out, raw[m.copied:]...)
}

// Covers reports whether the value at a JSON pointer is masked by a rule, by itself
// or as a part of something that is.
func Covers(rules []string, pointer string) bool {
	p := parse(rules)
	at := p.pointers
	for _, token := range tokens(pointer) {
		var hit bool
		if at, hit = p.names.step(at, token, true); hit {
			return true
		}
	}
	return false
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
			p.pointers = append(p.pointers, tokens(r))
		default:
			p.names = append(p.names, r)
		}
	}
	return p
}

// tokens splits a JSON pointer (RFC 6901, section 4).
func tokens(pointer string) []string {
	if pointer == "" {
		return nil
	}
	ts := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, t := range ts {
		if strings.IndexByte(t, '~') >= 0 {
			ts[i] = strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
		}
	}
	return ts
}

type names []string

// step goes down one token: it returns the rests of the pointers that go on from
// there, and whether a rule ends there.
func (n names) step(pointers [][]string, token string, isKey bool) (rest [][]string, hit bool) {
	if isKey {
		for _, name := range n {
			if name == token {
				return nil, true
			}
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

// masker walks a document that is known to be JSON and copies it from its first match on.
type masker struct {
	src    []byte
	names  names
	out    []byte
	copied int // src[:copied] is in out, where there is an out
}

// mask replaces src[from:to].
func (m *masker) mask(from, to int) {
	if m.out == nil {
		m.out = make([]byte, 0, len(m.src)+len(quotedMask))
	}
	m.out = append(append(m.out, m.src[m.copied:from]...), quotedMask...)
	m.copied = to
}

// value walks the value that starts at i and returns where it ends.
func (m *masker) value(i int, pointers [][]string) int {
	if len(m.names) == 0 && len(pointers) == 0 {
		return m.skip(i)
	}
	switch m.src[i] {
	case '{':
		return m.members(i, pointers)
	case '[':
		return m.items(i, pointers)
	}
	return m.skip(i)
}

func (m *masker) members(i int, pointers [][]string) int {
	for i = m.space(i + 1); m.src[i] != '}'; {
		end := m.skip(i)
		key := unquote(m.src[i:end])
		i = m.space(m.space(end) + 1) // over the colon
		i = m.child(i, pointers, key, true)
		if i = m.space(i); m.src[i] == ',' {
			i = m.space(i + 1)
		}
	}
	return i + 1
}

func (m *masker) items(i int, pointers [][]string) int {
	index := 0
	for i = m.space(i + 1); m.src[i] != ']'; index++ {
		token := ""
		if len(pointers) > 0 {
			token = strconv.Itoa(index)
		}
		i = m.child(i, pointers, token, false)
		if i = m.space(i); m.src[i] == ',' {
			i = m.space(i + 1)
		}
	}
	return i + 1
}

func (m *masker) child(i int, pointers [][]string, token string, isKey bool) int {
	rest, hit := m.names.step(pointers, token, isKey)
	if !hit {
		return m.value(i, rest)
	}
	end := m.skip(i)
	m.mask(i, end)
	return end
}

// skip returns where the value that starts at i ends.
func (m *masker) skip(i int) int {
	switch m.src[i] {
	case '"':
		for i++; m.src[i] != '"'; i++ {
			if m.src[i] == '\\' {
				i++
			}
		}
		return i + 1
	case '{', '[':
		depth := 0
		for {
			switch m.src[i] {
			case '"':
				i = m.skip(i) - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
	}
	for i < len(m.src) && strings.IndexByte(",]} \t\r\n", m.src[i]) < 0 {
		i++
	}
	return i
}

func (m *masker) space(i int) int {
	for i < len(m.src) && (m.src[i] == ' ' || m.src[i] == '\t' || m.src[i] == '\r' || m.src[i] == '\n') {
		i++
	}
	return i
}

// unquote decodes a JSON string that is known to be one.
func unquote(b []byte) string {
	var s string
	if plain := b[1 : len(b)-1]; bytes.IndexByte(plain, '\\') < 0 {
		return string(plain)
	}
	if json.Unmarshal(b, &s) != nil {
		return ""
	}
	return s
}
