package lock

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/gowebpki/jcs"
)

// hashOf returns "sha256:" and the hash of the canonical form of a JSON value, or "" if it is absent. Text that is
// not valid JSON, or has a number without a canonical form, is hashed unchanged.
func hashOf(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	canonical, err := canonicalize(raw)
	if err != nil {
		canonical = append([]byte("raw:"), raw...)
	}
	sum := sha256.Sum256(canonical)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// hashText returns the hash of a text, or "" if it is empty.
func hashText(s string) string {
	if s == "" {
		return ""
	}
	sum := sha256.Sum256(appendString(nil, s))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// canonicalize returns JSON in the form of RFC 8785. It decodes the JSON first, so that its depth is bounded and its
// time grows with n log n. The reader of the jcs library takes quadratic time in the number of keys, which a foreign
// schema could exploit.
func canonicalize(raw json.RawMessage) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if dec.More() {
		return nil, fmt.Errorf("more than one JSON value")
	}
	return appendValue(make([]byte, 0, len(raw)), v)
}

func appendValue(b []byte, v any) (_ []byte, err error) {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return fmt.Append(b, v), nil
	case string:
		return appendString(b, v), nil
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			return nil, err
		}
		s, err := jcs.NumberToJSON(f)
		return append(b, s...), err
	case []any:
		b = append(b, '[')
		for i, item := range v {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendValue(b, item); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case map[string]any:
		b = append(b, '{')
		for i, key := range sortedKeys(v) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, key), ':')
			if b, err = appendValue(b, v[key]); err != nil {
				return nil, err
			}
		}
		return append(b, '}'), nil
	}
	return nil, fmt.Errorf("unexpected %T", v)
}

// sortedKeys sorts by UTF-16 code units (RFC 8785, section 3.2.3).
func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if isASCII(a) && isASCII(b) {
			return strings.Compare(a, b)
		}
		return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
	})
	return keys
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > 0x7f })
}

// appendString writes a string with the escapes of RFC 8785, section 3.2.2.2.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\b':
			b = append(b, `\b`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\f':
			b = append(b, `\f`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r < ' ':
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = append(b, string(r)...)
		}
	}
	return append(b, '"')
}
