package server_test

import (
	"strings"
	"testing"

	"toolctl.dev/toolctl/pkg/mcp/server"
)

func TestReadTokensNamesEveryViolation(t *testing.T) {
	good := strings.Repeat("ab", 32)
	for _, tc := range []struct {
		name, text string
		want       []string // of the error; empty without an error
	}{
		{name: "two of one name", text: "# comment\n\nann:" + good + "\r\nann:" + strings.ToUpper(good) + "\n"},
		{name: "empty", text: "# nothing\n", want: []string{"no tokens: expected a line NAME:HEX"}},
		{name: "errors", text: "s3cret\nann:s3cret\na b:" + good + "\n:" + good, want: []string{"line 1: expected NAME:HEX", "line 2: the hash: expected the SHA-256", "line 3: the name", "line 4: the name"}},
		{name: "groups", text: "ann:" + good + ":finance,ops/eu\nbob:" + good + ": finance , x "},
		{name: "wrong groups", text: "ann:" + good + ":\nann:" + good + ":a,,b\nann:" + good + ":a:b\nann:s3cret:a\n", want: []string{"line 1: the groups: expected names", "line 2: the groups", "line 3: the groups", "line 4: the hash"}},
		{name: "endless line", text: strings.Repeat("x", 1<<17), want: []string{"token too long"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := server.ReadTokens(strings.NewReader(tc.text))
			if len(tc.want) == 0 && err != nil {
				t.Error(err)
			}
			for _, want := range tc.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
			}
			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("shows a secret: %v", err)
			}
		})
	}
}
