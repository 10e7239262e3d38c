package executors

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/redact"
)

// secrets are the values of one call that must show nowhere: what came from the
// environment, and tokens that were fetched with it. Longer ones come first, as they
// may hold shorter ones.
type secrets struct{ values []string }

// minSecret is the length of the shortest value that is looked for in foreign
// text, in bytes: shorter ones occur by chance. The parts of a request that hold
// a variable are never shown at all, whatever their length.
const minSecret = 6

func (s *secrets) add(values ...string) {
	for _, v := range values {
		if v = strings.TrimSpace(v); len(v) >= minSecret && !slices.Contains(s.values, v) {
			i, _ := slices.BinarySearchFunc(s.values, v, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
			s.values = slices.Insert(s.values, i, v)
		}
	}
}

// text masks the secrets in a text, in the forms in which servers and libraries repeat them.
func (s *secrets) text(t string) string {
	for _, v := range s.values {
		escaped := inner(v)
		for _, form := range []string{inner(escaped), escaped, v, url.QueryEscape(v), url.PathEscape(v), percentEncode(v), base64.StdEncoding.EncodeToString([]byte(v))} {
			if strings.Contains(t, form) {
				t = strings.ReplaceAll(t, form, redact.Mask)
			}
		}
	}
	return t
}

// inner is a text as it stands within a JSON string.
func inner(s string) string {
	text := jsonText(s)
	return string(text[1 : len(text)-1])
}

func (s *secrets) in(t []byte) bool {
	for _, v := range s.values {
		if bytes.Contains(t, []byte(v)) {
			return true
		}
	}
	return false
}

// json masks the secrets in a JSON document, which stays JSON: within strings and
// names however they are escaped, and whole numbers. Without one it returns raw itself.
func (s *secrets) json(raw json.RawMessage) json.RawMessage {
	if len(s.values) == 0 || bytes.IndexByte(raw, '\\') < 0 && !s.in(raw) {
		return raw
	}
	var out []byte
	copied := 0
	for i := 0; i < len(raw); {
		end := scalarEnd(raw, i)
		if end == i {
			i++
			continue
		}
		if masked := s.scalar(raw[i:end]); masked != nil {
			out = append(append(out, raw[copied:i]...), masked...)
			copied = end
		}
		i = end
	}
	if out == nil {
		return raw
	}
	return append(out, raw[copied:]...)
}

// scalarEnd returns where the string, number or name that starts at i ends; i when none does.
func scalarEnd(raw []byte, i int) int {
	if raw[i] != '"' {
		for i < len(raw) && strings.IndexByte("{}[]:,\" \t\r\n", raw[i]) < 0 {
			i++
		}
		return i
	}
	for i++; i < len(raw) && raw[i] != '"'; i++ {
		if raw[i] == '\\' {
			i++
		}
	}
	return min(i+1, len(raw))
}

// scalar returns what a string, number or name becomes; nil when it holds no secret.
func (s *secrets) scalar(token []byte) []byte {
	if token[0] != '"' {
		if s.in(token) {
			return jsonText(redact.Mask)
		}
		return nil
	}
	if bytes.IndexByte(token, '\\') < 0 && !s.in(token) {
		return nil
	}
	var text string
	if json.Unmarshal(token, &text) != nil {
		return nil
	}
	if masked := s.text(text); masked != text {
		return jsonText(masked)
	}
	return nil
}

// argument adds the values of arguments that a redaction rule covers: they may show
// in the URL and in what a server says about it.
func (s *secrets) arguments(raw json.RawMessage, rules []string) {
	if len(rules) == 0 {
		return
	}
	var args map[string]json.RawMessage
	if json.Unmarshal(raw, &args) != nil {
		return
	}
	for name, value := range args {
		if redact.Covers(rules, v1.Pointer("", name)) {
			s.add(scalars(value)...)
		}
	}
}

// scalars returns the texts of the strings and numbers in a JSON value.
func scalars(raw json.RawMessage) []string {
	var texts []string
	for i := 0; i < len(raw); {
		end := scalarEnd(raw, i)
		if end == i {
			i++
			continue
		}
		var text string
		if json.Unmarshal(raw[i:end], &text) != nil {
			text = string(raw[i:end])
		}
		texts = append(texts, text)
		i = end
	}
	return texts
}

// foreign makes a body that a server sent with an error fit to be shown: what the
// rules cover and all secrets masked, control characters gone, at most limit bytes.
func (s *secrets) foreign(body []byte, rules []string, limit int) string {
	body = bytes.TrimSpace(bytes.ToValidUTF8(body, []byte("\uFFFD")))
	switch {
	case json.Valid(body):
		body = redact.JSON(s.json(body), rules)
	case mentions(body, rules):
		// It cannot be told what in it belongs to the name.
		return redact.Mask
	}
	text := s.text(string(body))
	text = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, text)
	return cut(text, limit)
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

// cut shortens a text to at most limit bytes, between two characters.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}
