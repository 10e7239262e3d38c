package redact

import (
	"slices"
	"testing"
)

func TestMaskURL(t *testing.T) {
	for in, want := range map[string]string{
		"":                                    "",
		"https://example.com/mcp":             "https://example.com/mcp",
		"https://u:hunter2@example.com/":      "https://u:***@example.com/",
		"https://u:${PW}@example.com/":        "https://u:${PW}@example.com/",
		"https://u@example.com/a:b@c":         "https://u@example.com/a:b@c",
		"https://h/p?q=1&api_key=x&page=2":    "https://h/p?q=1&api_key=***&page=2",
		"https://h/p?access%5Ftoken=x#a=b":    "https://h/p?access%5Ftoken=***#a=b",
		"https://h/p?token={{.t}}&key=${KEY}": "https://h/p?token={{.t}}&key=${KEY}",
		"https://h/p?max_tokens=5&author=a":   "https://h/p?max_tokens=5&author=a",
	} {
		if got := URL(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

func TestMaskArgs(t *testing.T) {
	in := []string{"-y", "server", "--token=abc", "--api-key", "abc", "--password", "-v", "--author=me", "--secret=${S}", "PASSWORD=abc", "token"}
	want := []string{"-y", "server", "--token=***", "--api-key", "***", "--password", "-v", "--author=me", "--secret=${S}", "PASSWORD=***", "token"}
	if got := Args(in); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if in[2] != "--token=abc" {
		t.Error("the manifest's own arguments were changed")
	}
}
