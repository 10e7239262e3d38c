package redact

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"toolctl.dev/toolctl/internal/jsontext"
)

// Masker masks by rules, and masks values wherever they occur. Its methods except Add are safe
// for concurrent use. A nil Masker masks nothing.
type Masker struct {
	rules  parsed
	values []string // the longest first, because a value may contain another
	long   *strings.Replacer
	short  map[string]bool
}

// New returns a masker of rules and values.
func New(rules []string, values ...string) *Masker {
	m := &Masker{rules: parse(rules)}
	m.Add(values...)
	return m
}

// wholeWords is the length in bytes below which a value is masked only as a whole word, since
// short values occur in other words by chance.
const wholeWords = 6

// Add adds values, except empty ones and parts of [Mask].
func (m *Masker) Add(values ...string) {
	before := len(m.values)
	m.values = slices.Clone(m.values)
	for _, v := range values {
		if v = strings.TrimSpace(v); v != "" && !strings.Contains(Mask, v) && !m.has(v) {
			m.values = append(m.values, v)
		}
	}
	if len(m.values) == before {
		return
	}
	slices.SortStableFunc(m.values, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	m.short = map[string]bool{}
	var pairs []string
	for _, v := range m.values {
		if len(v) < wholeWords {
			m.short[v] = true
			continue
		}
		for _, form := range forms(v) {
			pairs = append(pairs, form, Mask)
		}
	}
	m.long = nil
	if pairs != nil {
		m.long = strings.NewReplacer(pairs...)
	}
}

// has reports whether v is one of few known values. Most maskers have few values, so they need no map.
func (m *Masker) has(v string) bool { return len(m.values) < 64 && slices.Contains(m.values, v) }

// forms returns the encodings in which servers and libraries repeat a value.
func forms(v string) []string {
	escaped := string(jsontext.Quote(v))
	escaped = escaped[1 : len(escaped)-1]
	twice := string(jsontext.Quote(escaped))
	ascii := strings.Trim(strconv.QuoteToASCII(v), `"`)
	all := []string{v, twice[1 : len(twice)-1], escaped, ascii, url.QueryEscape(v), url.PathEscape(v), html.EscapeString(v),
		base64.StdEncoding.EncodeToString([]byte(v)), base64.URLEncoding.EncodeToString([]byte(v)),
		base64.RawStdEncoding.EncodeToString([]byte(v)), base64.RawURLEncoding.EncodeToString([]byte(v)), hex.EncodeToString([]byte(v))}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b)) })
	return slices.Compact(all)
}

// Empty reports whether the masker masks nothing.
func (m *Masker) Empty() bool { return m == nil || m.rules.empty() && len(m.values) == 0 }

// Join returns a masker with the rules and values of both.
func (m *Masker) Join(o *Masker) *Masker {
	switch {
	case o.Empty():
		return m
	case m.Empty():
		return o
	}
	both := &Masker{rules: parsed{names: slices.Concat(m.rules.names, o.rules.names), pointers: slices.Concat(m.rules.pointers, o.rules.pointers)}}
	both.Add(slices.Concat(m.values, o.values)...)
	return both
}

// Bare returns a masker with the same values and no rules.
func (m *Masker) Bare() *Masker {
	if m == nil {
		return nil
	}
	return &Masker{values: m.values, long: m.long, short: m.short}
}

type contextKey struct{}

// NewContext returns a context with the masker of a call.
func NewContext(ctx context.Context, m *Masker) context.Context {
	return context.WithValue(ctx, contextKey{}, m)
}

// FromContext returns the masker of a context; nil if the context has no masker.
func FromContext(ctx context.Context) *Masker {
	m, _ := ctx.Value(contextKey{}).(*Masker)
	return m
}

// Values masks the values in a text, and nothing else.
func (m *Masker) Values(s string) string {
	if m == nil || len(m.values) == 0 {
		return s
	}
	if m.long != nil {
		s = m.long.Replace(s)
	}
	if len(m.short) > 0 {
		s = m.words(s)
	}
	return s
}

// words masks short values that are whole words.
func (m *Masker) words(s string) string {
	out, before := splice[string]{src: s}, ' '
	for i := 0; i < len(s); {
		if !isWord(before) {
			if n := m.wordAt(s[i:]); n > 0 {
				out.put(i, i+n, Mask)
				i += n
				before = ']'
				continue
			}
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		before = r
		i += n
	}
	return out.done()
}

// wordAt returns the length of the short value at the start of s; 0 if s starts with no such value.
func (m *Masker) wordAt(s string) int {
	for n := min(wholeWords-1, len(s)); n > 0; n-- {
		if m.short[s[:n]] {
			if after, _ := utf8.DecodeRuneInString(s[n:]); n == len(s) || !isWord(after) {
				return n
			}
		}
	}
	return 0
}

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// isNumber reports whether a JSON number or literal equals or contains one of the values.
func (m *Masker) isNumber(token string) bool {
	if len(m.values) == 0 {
		return false
	}
	if m.long != nil && m.long.Replace(token) != token {
		return true
	}
	n, err := strconv.ParseFloat(token, 64)
	if err != nil {
		return false
	}
	for _, v := range m.values { // different notations can mean the same number, such as 4e5 and 400000
		if len(v) < wholeWords || len(v) > 40 {
			continue
		}
		if f, err := strconv.ParseFloat(v, 64); err == nil && f == n {
			return true
		}
	}
	return false
}

// Covered returns the strings, numbers and names in a JSON document that rules cover, as text.
func Covered(raw json.RawMessage, rules []string) []string {
	m := New(rules)
	if m.Empty() || !json.Valid(raw) {
		return nil
	}
	var out []string
	w := walker{Masker: m, splice: splice[[]byte]{src: raw}, depth: maxDepth, hit: func(part []byte) {
		dec := json.NewDecoder(bytes.NewReader(part))
		dec.UseNumber()
		for token, err := dec.Token(); err == nil; token, err = dec.Token() {
			switch token := token.(type) {
			case string:
				out = append(out, token)
			case json.Number:
				out = append(out, token.String())
			}
		}
	}}
	w.value(w.space(0), m.rules.pointers)
	return out
}
