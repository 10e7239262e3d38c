package gateway

import (
	"fmt"
	"log/slog"
	"os"
	"strings"

	"toolctl.dev/toolctl/internal/perm"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/pkg/mcp/server"
)

// tokenWatch follows changes of Options.TokenFile.
type tokenWatch struct {
	fileWatch
	tokens *server.Tokens
}

func newTokenWatch(path string, log *slog.Logger) (*tokenWatch, error) {
	t := &tokenWatch{fileWatch: fileWatch{
		path: path, log: log, name: "the token file", kept: "the previous tokens are still accepted",
		refused: "the token file cannot be used: the previous tokens are still accepted",
	}}
	t.load = func() (string, []any, error) {
		next, err := ReadTokens(path)
		if err != nil {
			return "", nil, err
		}
		t.tokens.Set(next)
		return "tokens read again", []any{"tokens", next.Count()}, nil
	}
	var err error
	t.last, _ = os.Stat(path) // before the read, so that a later change is read again
	t.tokens, err = ReadTokens(path)
	return t, err
}

// ReadTokens reads a file in the form of [server.ReadTokens]. The error is that of the file, or names every invalid
// line. It refuses a file that others can write, because they could add a token of their own.
func ReadTokens(path string) (*server.Tokens, error) {
	if err := perm.Kept(path); err != nil {
		return nil, err
	}
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	tokens, err := server.ReadTokens(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", path, strings.ReplaceAll(err.Error(), "\n", "\n  "))
	}
	return tokens, nil
}
