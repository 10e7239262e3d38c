package executors

import (
	"bytes"
	"encoding/json"
	"strings"

	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/internal/redact"
)

// secrets are the values of a call that must not appear in any output: those from the
// environment, and tokens that were fetched with them.
type secrets struct{ masks *redact.Masker }

func (s *secrets) add(values ...string) {
	if s.masks == nil {
		s.masks = redact.New(nil)
	}
	s.masks.Add(values...)
}

// text masks the secrets in a text, also in the encodings in which servers and libraries repeat them.
func (s *secrets) text(t string) string { return s.masks.Values(t) }

// json masks the secrets in a JSON document, which stays JSON.
func (s *secrets) json(raw json.RawMessage) json.RawMessage { return s.masks.JSON(raw) }

// inner returns a text as the inside of a JSON string.
func inner(s string) string {
	text := jsontext.Quote(s)
	return string(text[1 : len(text)-1])
}

// scalarEnd returns the end of the string, number or literal that starts at i; i if no scalar starts there.
func scalarEnd(raw []byte, i int) int {
	if raw[i] != '"' {
		for i < len(raw) && strings.IndexByte("{}[]:,\" \t\r\n", raw[i]) < 0 {
			i++
		}
		return i
	}
	return jsontext.SkipString(raw, i)
}

// arguments adds the values of redacted arguments, which may appear in the URL and in
// error responses about it.
func (s *secrets) arguments(raw json.RawMessage, rules []string) {
	s.add(redact.Covered(raw, rules)...)
}

// foreign prepares the body of an error response for display: it masks secrets and the values that the rules cover,
// removes control characters, and truncates it to limit bytes.
func (s *secrets) foreign(body []byte, rules []string, limit int) string {
	body = bytes.TrimSpace(bytes.ToValidUTF8(body, []byte("\uFFFD")))
	switch {
	case json.Valid(body):
		body = redact.JSON(s.json(body), rules)
	case mentions(body, rules):
		// It is unknown which part of the text belongs to the name.
		return redact.Mask
	}
	text := s.text(string(body))
	text = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, text)
	return clip.Bytes(text, limit)
}

// mentions reports whether a text that is not JSON holds a name that a rule masks.
func mentions(text []byte, rules []string) bool {
	for _, r := range rules {
		name := r[strings.LastIndexByte(r, '/')+1:]
		if name != "" && name != "*" && bytes.Contains(text, []byte(name)) {
			return true
		}
	}
	return false
}
