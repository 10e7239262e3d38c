package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/pkg/mcp/server"
)

// tokenWatch follows changes of Options.TokenFile.
type tokenWatch struct {
	path   string
	tokens *server.Tokens
	last   os.FileInfo // of the file as it was read
	log    *slog.Logger
	failed atomic.Pointer[time.Time] // when the last reading failed; nil when it did not
}

func newTokenWatch(path string, log *slog.Logger) (*tokenWatch, error) {
	info, _ := os.Stat(path) // before it is read: what changes meanwhile is read again
	tokens, err := ReadTokens(path)
	return &tokenWatch{path: path, tokens: tokens, last: info, log: log}, err
}

// ReadTokens reads a file in the form of [server.ReadTokens]. The error is that of the file,
// or names every line that is not in that form.
func ReadTokens(path string) (*server.Tokens, error) {
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

// lookEvery is how often the file is looked at. Events of the file system would miss
// what a symlink leads to, which is how secrets are put into containers.
const lookEvery = time.Second

// follow reads the file again when it changes, until ctx ends.
func (t *tokenWatch) follow(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, _ := os.Stat(t.path)
		if changed := !sameFile(t.last, now); changed || t.failed.Load() != nil {
			t.read(changed)
			t.last = now
		}
	}
}

func sameFile(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// read takes the tokens of the file, unless it has a violation.
func (t *tokenWatch) read(changed bool) {
	next, err := ReadTokens(t.path)
	if err != nil {
		if changed { // a file that stays bad is told once
			now := time.Now()
			t.failed.Store(&now)
			t.log.Error("the token file cannot be used: the tokens before it are taken", "file", t.path, "error", err.Error())
		}
		return
	}
	t.tokens.Set(next)
	t.failed.Store(nil)
	t.log.Info("tokens read again", "file", t.path, "tokens", next.Count())
}

// warning is what /readyz says, which anyone may read: the log has the reasons.
func (t *tokenWatch) warning() string {
	at := t.failed.Load()
	if at == nil {
		return ""
	}
	return fmt.Sprintf("the token file that came at %s cannot be used; the tokens before it are taken, and the log says why", at.UTC().Format(time.RFC3339))
}
