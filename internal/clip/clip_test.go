package clip_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"toolctl.dev/toolctl/internal/clip"
)

func TestBytes(t *testing.T) {
	for _, c := range []struct {
		name, text string
		most       int
		want       string
	}{
		{"short", "abc", 3, "abc"},
		{"long", "abcd", 3, "abc…"},
		{"a character of two bytes", "abé", 3, "ab…"},
		{"an accent of its own", "abe\u0301", 3, "ab…"},
		{"a family", "a👨\u200d👩\u200d👧", 8, "a…"},
		{"a colour", "a👍🏽", 5, "a…"},
		{"a variation", "a❤\ufe0f", 4, "a…"},
		{"the first flag", "🇳🇴🇸🇪", 4, "…"},
		{"the second flag", "🇳🇴🇸🇪", 12, "🇳🇴…"},
		{"a line's end", "ab\r\nc", 3, "ab…"},
		{"nothing", "abc", 0, "…"},
		{"less than nothing", "abc", -1, "…"},
		{"not UTF-8", strings.Repeat("\x80", 9), 6, "\x80\x80\x80…"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := clip.Bytes(c.text, c.most); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	// Many combining marks must not make the result empty.
	if got := clip.Bytes("a"+strings.Repeat("\u0301", 500), 100); len(got) < 90 {
		t.Errorf("got %d bytes", len(got))
	}
}

func TestRunes(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{{"ééé", 3, "ééé"}, {"éééé", 3, "ééé…"}, {"ab", 5, "ab"}, {"abe\u0301", 3, "ab…"}} {
		if got := clip.Runes(c.text, c.most); got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
}

func FuzzBytes(f *testing.F) {
	f.Add("a👨\u200d👩é\r\n", 5)
	f.Fuzz(func(t *testing.T, s string, n int) {
		got := clip.Start(s, n)
		if len(got) > max(n, 0) || !strings.HasPrefix(s, got) || utf8.ValidString(s) && !utf8.ValidString(got) {
			t.Fatalf("%q, %d: %q", s, n, got)
		}
	})
}
