package inspect

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Classes of hidden characters.
const (
	tag       = "tag"
	zeroWidth = "zero width"
	bidi      = "bidi control"
	variation = "variation selector"
	control   = "control"
)

// class returns the class of an invisible character, or "" for a visible character.
func class(r rune) string {
	switch {
	case r < ' ' && r != '\t' && r != '\n' && r != '\r', r >= 0x7f && r < 0xa0:
		return control
	case r < 0xad:
		return ""
	case r >= 0xe0000 && r <= 0xe007f:
		return tag
	case r == 0xad, r == 0x34f, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r == 0x180e, r >= 0x200b && r <= 0x200d,
		r >= 0x2060 && r <= 0x2064, r == 0x3164, r == 0xfeff, r == 0xffa0:
		return zeroWidth
	case r == 0x61c, r == 0x200e, r == 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return bidi
	case r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0100 && r <= 0xe01ef:
		return variation
	}
	return ""
}

// hidden returns a finding for each run of hidden characters of one class that have no legitimate use at their place.
func hidden(s string) []v1.Violation {
	if !strings.ContainsFunc(s, func(r rune) bool { return class(r) != "" }) {
		return nil
	}
	var fs []v1.Violation
	runes := []rune(s)
	rtl := hasRTL(runes)
	for i := 0; i < len(runes) && len(fs) < maxFindings; i++ {
		c := class(runes[i])
		if c == "" {
			continue
		}
		end := i + 1
		for end < len(runes) && class(runes[end]) == c {
			end++
		}
		if !allowed(runes, i, end, c, rtl) {
			fs = append(fs, finding(runes, i, end, c))
		}
		i = end - 1
	}
	return fs
}

func finding(runes []rune, from, to int, class string) v1.Violation {
	what := fmt.Sprintf("hidden character U+%04X (%s)", runes[from], class)
	if n := to - from; n > 1 {
		what = fmt.Sprintf("%d hidden characters from U+%04X on (%s)", n, runes[from], class)
	}
	msg := fmt.Sprintf("%s at character %d: %q", what, from+1, excerpt(runes, from, to))
	if class == tag {
		if text := tagText(runes[from:to]); text != "" {
			msg += fmt.Sprintf("; it spells %q", text)
		}
	}
	return v1.Violation{Expected: "visible text", Got: fmt.Sprintf("U+%04X", runes[from]), Message: msg}
}

// tagText returns the ASCII characters that tag characters stand for.
func tagText(runes []rune) string {
	const limit = 80
	var out []rune
	for _, r := range runes {
		if c := r - 0xe0000; c >= ' ' && c < 0x7f && len(out) < limit {
			out = append(out, c)
		}
	}
	return string(out)
}

// allowed reports whether the run of a class from i to end has a legitimate use there.
func allowed(runes []rune, i, end int, c string, rtl bool) bool {
	var before, after rune
	if i > 0 {
		before = runes[i-1]
	}
	if end < len(runes) {
		after = runes[end]
	}
	switch c {
	case tag: // an emoji tag sequence (Unicode TS 51, section 1.4.8)
		return before == 0x1f3f4 && end-i <= 8 && runes[end-1] == 0xe007f
	case zeroWidth:
		if end-i > 1 {
			return false
		}
		switch runes[i] {
		case 0x200d: // joins letters, or emoji whose first part may end in a selector or a skin tone
			return joins(before) && joins(after) || isEmoji(before) && isEmoji(after) || class(before) == variation && isEmoji(after)
		case 0x200c:
			return joins(before) && joins(after)
		}
	case bidi:
		// Embeddings and overrides reorder visible text.
		return rtl && !slices.ContainsFunc(runes[i:end], func(r rune) bool { return r >= 0x202a && r <= 0x202e })
	case variation:
		if end-i > 1 || before == 0 || unicode.IsSpace(before) || class(before) != "" {
			return false
		}
		return runes[i] < 0xe0100 || unicode.Is(unicode.Han, before)
	}
	return false
}

// joins reports whether a letter belongs to a script in which U+200C and U+200D control the joining of letters.
func joins(r rune) bool {
	return unicode.In(r, unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Nko, unicode.Devanagari, unicode.Bengali,
		unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam,
		unicode.Sinhala, unicode.Khmer, unicode.Myanmar, unicode.Tibetan)
}

func isEmoji(r rune) bool {
	return r >= 0x1f000 && r <= 0x1faff || r >= 0x2190 && r <= 0x2bff
}

func hasRTL(runes []rune) bool {
	return slices.ContainsFunc(runes, func(r rune) bool {
		return unicode.In(r, unicode.Arabic, unicode.Hebrew, unicode.Syriac, unicode.Thaana, unicode.Nko, unicode.Adlam)
	})
}
