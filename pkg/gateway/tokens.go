package gateway

import (
	"fmt"
	"strings"

	"toolctl.dev/toolctl/internal/perm"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/pkg/mcp/server"
)

// watchTokens reads Options.TokenFile and follows its changes.
func (g *Gateway) watchTokens() (err error) {
	w := &fileWatch{path: g.opts.TokenFile, name: "the token file", kept: "the previous tokens are still accepted"}
	g.http.Tokens, err = watchFile(g, w, ReadTokens, func(now, next *server.Tokens) (string, []any) {
		now.Set(next)
		return "tokens read again", []any{"tokens", next.Count()}
	})
	return err
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
