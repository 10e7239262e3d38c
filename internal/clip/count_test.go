package clip_test

import (
	"testing"

	"toolctl.dev/toolctl/internal/clip"
)

func TestCount(t *testing.T) {
	for want, got := range map[string]string{
		"1 item": clip.Count(1, "item"), "0 items": clip.Count(0, "item"), "2 items": clip.Count(2, "item"),
		"1 property": clip.Count(1, "property"), "2 properties": clip.Count(2, "property"), "2 keys": clip.Count(2, "key"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
