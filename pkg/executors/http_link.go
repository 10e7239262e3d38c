package executors

import "strings"

// nextLink returns the target of the first link with the relation "next" in Link headers
// (RFC 8288, section 3); "" when there is none.
func nextLink(headers []string) string {
	for _, h := range headers {
		for {
			_, rest, ok := strings.Cut(h, "<")
			if !ok {
				break
			}
			target, rest, ok := strings.Cut(rest, ">")
			if !ok {
				break
			}
			rel, after := linkRelation(rest)
			for r := range strings.FieldsSeq(rel) {
				if strings.EqualFold(r, "next") {
					return strings.TrimSpace(target)
				}
			}
			h = after
		}
	}
	return ""
}

// linkRelation reads the parameters of one link. It returns the first rel, as only that one
// counts, and what follows the link.
func linkRelation(s string) (rel, after string) {
	for found := false; ; {
		s = strings.TrimLeft(s, " \t;")
		if s == "" || s[0] == ',' {
			return rel, s
		}
		end := strings.IndexAny(s, "=;,")
		if end < 0 {
			return rel, ""
		}
		name := strings.TrimSpace(s[:end])
		if s = s[end:]; s[0] != '=' {
			continue
		}
		var value string
		value, s = linkValue(strings.TrimLeft(s[1:], " \t"))
		if strings.EqualFold(name, "rel") && !found {
			rel, found = value, true
		}
	}
}

// linkValue reads a token or a quoted string.
func linkValue(s string) (value, rest string) {
	if !strings.HasPrefix(s, `"`) {
		end := strings.IndexAny(s, ";,")
		if end < 0 {
			end = len(s)
		}
		return strings.TrimSpace(s[:end]), s[end:]
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:]
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String(), ""
}
