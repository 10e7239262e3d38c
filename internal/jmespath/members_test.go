package jmespath_test

import (
	"slices"
	"strings"
	"testing"

	"toolctl.dev/toolctl/internal/jmespath"
)

func TestMembers(t *testing.T) {
	for text, want := range map[string]string{
		"a":                           "a; a",
		"@":                           "; ",
		"@.a":                         "a; a",
		"a.b.c":                       "a; a",
		"\"a b\"[0].c":                "a b; a b",
		"{x: a, y: {z: b.c}}":         "a b; a b",
		"[a, b[*].c, c[].d, d.*.e]":   "a b c d; a b c d",
		"a || b":                      "a b; ",
		"{x: not_null(a, `1`), y: b}": "a b; b",
		"a[?b == `1`].c":              "a; a",
		"{x: a} | x":                  "a; a",
		"sort_by(a, &b)":              "a; ",
		"a[1:2].b":                    "a; a",
		"!a && b > c":                 "a b c; ",
		"'a'":                         "; ",
		"*":                           "; ",
		"[]":                          "; ",
		"@ | a":                       "a; a",
		"to_string(@)":                "; ",
	} {
		e, err := jmespath.Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		read, bare := e.Members()
		slices.Sort(read)
		slices.Sort(bare)
		if got := strings.Join(read, " ") + "; " + strings.Join(bare, " "); got != want {
			t.Errorf("%s: %q, expected %q", text, got, want)
		}
	}
}
