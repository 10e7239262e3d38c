package redact

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"unicode/utf8"

	"toolctl.dev/toolctl/internal/jsontext"
)

// maxDepth limits the depth of nested texts; deeper ones are masked as a whole.
const maxDepth = 6

// Text masks everything in a text that the rules name (in JSON, in "name: value" and name=value, and in
// percent-encoded and base64 words), and the values of the masker.
func (m *Masker) Text(s string) string {
	if m.Empty() || s == "" {
		return s
	}
	return m.text(s, 0)
}

func (m *Masker) text(s string, depth int) string {
	switch {
	case len(s) < 2 && len(m.values) == 0:
		return s
	case depth > maxDepth:
		if strings.ContainsAny(s, `{[=:%\`) {
			return Mask
		}
		return m.Values(s)
	}
	if !m.rules.empty() {
		if t := strings.Trim(s, " \t\r\n"); t != "" && strings.IndexByte(`{["`, t[0]) >= 0 && json.Valid([]byte(t)) {
			return string(m.document([]byte(s), depth))
		}
	}
	s = m.unescaped(s, depth)
	if !m.rules.empty() {
		s = m.pairs(m.embedded(s, depth))
	}
	return m.Values(m.encoded(s, depth))
}

// unescaped masks a text that is the inside of a JSON string, such as {\"a\":1}.
func (m *Masker) unescaped(s string, depth int) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var inside string
	if json.Unmarshal([]byte(`"`+s+`"`), &inside) != nil || inside == s {
		return s
	}
	if masked := m.text(inside, depth+1); masked != inside {
		q := jsontext.Quote(masked)
		return string(q[1 : len(q)-1])
	}
	return s
}

// embedded masks JSON objects and arrays in a text: JSON Lines, and JSON in prose.
func (m *Masker) embedded(s string, depth int) string {
	out := splice[string]{src: s}
	for i, left := 0, 16*len(s)+1024; i < len(s); {
		if s[i] != '{' && s[i] != '[' {
			i++
			continue
		}
		end := balanced(s[i:])
		if left -= max(end, 1); left < 0 {
			return Mask // too many brackets that are not valid JSON
		}
		if end < 0 { // the bracket is not closed, so the JSON extends to the end of the text
			left -= len(s) - i
			i++
			continue
		}
		doc := s[i : i+end]
		if !json.Valid([]byte(doc)) {
			i++
			continue
		}
		if masked := m.document([]byte(doc), depth); string(masked) != doc {
			out.put(i, i+end, string(masked))
		}
		i += end
	}
	return out.done()
}

// balanced returns the end of the bracket that opens s, ignoring strings; -1 if the bracket is not closed.
func balanced(s string) int {
	end := jsontext.SkipValue(s, 0)
	if last := s[end-1]; last != '}' && last != ']' {
		return -1
	}
	return end
}

// pairs masks the values of names in a text that is not JSON: name: value, name=value,
// "name": "value, <name>value</name>.
func (m *Masker) pairs(s string) string {
	for _, name := range m.rules.words() {
		s = pair(s, name)
	}
	return s
}

// words returns the names to find in a text: bare keys, and pointers with one token.
func (p parsed) words() []string {
	all := p.names[:len(p.names):len(p.names)]
	for _, tokens := range p.pointers {
		if len(tokens) == 1 && tokens[0] != "*" {
			all = append(all, tokens[0])
		}
	}
	return all
}

func pair(s, name string) string {
	if name == "" {
		return s
	}
	out := splice[string]{src: s}
	for i := 0; ; {
		at := strings.Index(s[i:], name)
		if at < 0 {
			break
		}
		at += i
		i = at + len(name)
		if before, _ := utf8.DecodeLastRuneInString(s[:at]); at > 0 && isWord(before) {
			continue
		}
		from, to := pairValue(s, at, i)
		if from == to {
			continue
		}
		if i = to; s[from:to] == Mask {
			continue
		}
		out.put(from, to, Mask)
	}
	return out.done()
}

// pairValue returns the position of the value for the name at s[at:i]; from equals to if there is no value.
func pairValue(s string, at, i int) (from, to int) {
	if at > 0 && s[at-1] == '<' && i < len(s) && s[i] == '>' {
		if end := strings.Index(s[i+1:], "</"); end >= 0 {
			return i + 1, i + 1 + end
		}
		return i + 1, len(s)
	}
	over := func(chars string, most int) {
		for n := 0; n < most && i < len(s) && strings.IndexByte(chars, s[i]) >= 0; n++ {
			i++
		}
	}
	over(`\"'`+"` \t]", 32)
	if i == len(s) || s[i] != ':' && s[i] != '=' {
		return i, i
	}
	equals := s[i] == '='
	over(":=>", 3)
	over(" \t", 64)
	quoteAt := i
	over(`\`, 16)
	if i < len(s) && (s[i] == '"' || s[i] == '\'' || s[i] == '`') {
		i++
		return i, i + closing(s[i:], s[quoteAt:i])
	}
	i = quoteAt
	if i < len(s) && (s[i] == '{' || s[i] == '[') && !strings.HasPrefix(s[i:], Mask) {
		if end := balanced(s[i:]); end > 0 {
			return i, i + end
		}
		return i, len(s)
	}
	if strings.HasPrefix(s[i:], Mask) {
		return i, i + len(Mask)
	}
	ends := "\r\n"
	if equals {
		ends = "\r\n \t&;,\"'<>)}]"
	}
	if end := strings.IndexAny(s[i:], ends); end >= 0 {
		return i, i + end
	}
	return i, len(s)
}

// closing returns the position of the closing quote, which has as many backslashes before it as the opening quote.
func closing(s, mark string) int {
	for i := 0; i < len(s); {
		at := strings.Index(s[i:], mark)
		if at < 0 {
			break
		}
		if at += i; at > 0 && s[at-1] == '\\' { // an escaped quote
			i = at + len(mark)
			continue
		}
		return at
	}
	return len(s)
}

// minEncoded is the minimum length of a word that is decoded to look for secrets.
const minEncoded = 16

// encoded masks inside percent-encoded and base64 words.
func (m *Masker) encoded(s string, depth int) string {
	if len(s) < minEncoded {
		return s
	}
	out := splice[string]{src: s}
	for i := 0; i < len(s); {
		if !isEncoding(s[i]) {
			i++
			continue
		}
		end := i + 1
		for end < len(s) && isEncoding(s[end]) {
			end++
		}
		if pad := min(end+2, len(s)); strings.HasPrefix("==", s[end:pad]) || end < len(s) && s[end] == '=' && !isEncoding(s[end+1]) {
			end += len(s[end:pad]) - len(strings.TrimLeft(s[end:pad], "="))
		}
		if word := s[i:end]; len(word) >= minEncoded {
			if masked := m.word(word, depth); masked != word {
				out.put(i, end, masked)
			}
		}
		i = end
	}
	return out.done()
}

func isEncoding(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '-' || c == '_' || c == '%'
}

// word masks the inside of an encoded word.
func (m *Masker) word(s string, depth int) string {
	if strings.IndexByte(s, '%') >= 0 {
		plain, err := url.QueryUnescape(s)
		if err != nil || plain == s {
			return s
		}
		if masked := m.text(plain, depth+1); masked != plain {
			return url.QueryEscape(masked)
		}
		return s
	}
	bare := strings.TrimRight(s, "=")
	enc := base64.RawStdEncoding
	if strings.ContainsAny(bare, "-_") {
		enc = base64.RawURLEncoding
	}
	plain, err := enc.DecodeString(bare)
	if err != nil || !isText(plain) {
		return s
	}
	masked := m.text(string(plain), depth+1)
	if masked == string(plain) {
		return s
	}
	if len(bare) < len(s) {
		enc = enc.WithPadding(base64.StdPadding)
	}
	return enc.EncodeToString([]byte(masked))
}

// isText reports whether bytes are UTF-8 without control characters other than white space.
func isText(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' {
			return false
		}
	}
	return utf8.Valid(b)
}
