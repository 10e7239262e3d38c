package clip_test

import (
	"testing"

	"toolctl.dev/toolctl/internal/clip"
)

func TestLine(t *testing.T) {
	if got := clip.Line("a\tb\nc\x1b[31md\u202ee\u2069é"); got != "a b c[31mdeé" {
		t.Errorf("got %q", got)
	}
	for n, want := range map[int]string{20: "one two thréé", 13: "one two thréé"} {
		if got := clip.Words(" one\n two  thréé ", n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
	if got := clip.Words("one two three", 6); len([]rune(got)) > 6 {
		t.Errorf("got %q", got)
	}
}
