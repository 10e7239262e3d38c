package server

import (
	"bufio"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"toolctl.dev/toolctl/internal/clip"
)

// Tokens holds the bearer tokens that a server accepts, each with the name of its principal. It stores only
// hashes of the tokens. All methods are safe for concurrent use.
type Tokens struct {
	mu       sync.Mutex
	list     []token // never changed in place
	watchers map[*watcher]struct{}
}

// watcher is notified when the token with the hash sum is no longer accepted.
type watcher struct {
	sum  [sha256.Size]byte
	tell func()
}

type token struct {
	name   string
	groups []string
	sum    [sha256.Size]byte
}

const maxTokens = 10_000

// ReadTokens reads a file of tokens with a line NAME:HEX for each token, where HEX is the SHA-256 of the
// token, or NAME:HEX:GROUP,GROUP with the groups of the principal for the approvers of policies. NAME has 1
// to 64 letters, digits, ".", "_", "-" and "@"; a GROUP may also contain "/". A NAME may appear on several
// lines, so that a token can be replaced without interruption. Empty lines and lines that start with "#"
// are ignored. The error names every invalid line without showing its content.
func ReadTokens(r io.Reader) (*Tokens, error) {
	t := &Tokens{}
	var errs []error
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, text, ok := strings.Cut(line, ":")
		text, list, grouped := strings.Cut(text, ":")
		sum, err := hex.DecodeString(text)
		var groups []string
		if grouped {
			for g := range strings.SplitSeq(list, ",") {
				groups = append(groups, strings.TrimSpace(g))
			}
		}
		switch {
		case len(t.list) == maxTokens:
			return nil, fmt.Errorf("line %d: more than %d tokens", n, maxTokens)
		case !ok:
			errs = append(errs, fmt.Errorf("line %d: expected NAME:HEX, got no colon", n))
		case !isName(name, "._-@"):
			errs = append(errs, fmt.Errorf(`line %d: the name: expected 1 to 64 letters, digits, ".", "_", "-" and "@"`, n))
		case err != nil || len(sum) != sha256.Size:
			errs = append(errs, fmt.Errorf("line %d: the hash: expected the SHA-256 of the token as 64 hexadecimal digits, got %s", n, clip.Count(len(text), "character")))
		case slices.ContainsFunc(groups, func(g string) bool { return !isName(g, "._-@/") }):
			errs = append(errs, fmt.Errorf(`line %d: the groups: expected names with commas between them, each of 1 to 64 letters, digits, ".", "_", "-", "@" and "/"`, n))
		default:
			t.list = append(t.list, token{name, groups, [sha256.Size]byte(sum)})
		}
	}
	errs = append(errs, lines.Err())
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(t.list) == 0 {
		return nil, errors.New("no tokens: expected a line NAME:HEX for each, where HEX is the SHA-256 of the token")
	}
	return t, nil
}

// isName reports whether a name consists of 1 to 64 letters, digits and characters of more.
func isName(name, more string) bool {
	const most = 64
	for _, c := range []byte(name) {
		if !strings.ContainsRune(more, rune(c)) && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return name != "" && len(name) <= most
}

// of returns the entry of a token. It takes the same time for valid and invalid tokens.
func (t *Tokens) of(presented string) (token, bool) {
	t.mu.Lock()
	list := t.list
	t.mu.Unlock()
	return find(list, sha256.Sum256([]byte(presented)))
}

func find(list []token, sum [sha256.Size]byte) (token, bool) {
	at := -1
	for i := range list {
		at = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(sum[:], list[i].sum[:]), i, at)
	}
	if at < 0 {
		return token{}, false
	}
	return list[at], true
}

// Set replaces the accepted tokens with those of next. It ends streams whose token is no longer accepted,
// or now has another principal or other groups.
func (t *Tokens) Set(next *Tokens) {
	next.mu.Lock()
	list := next.list
	next.mu.Unlock()
	t.mu.Lock()
	old := t.list
	t.list = list
	var told []func()
	for w := range t.watchers {
		if before, _ := find(old, w.sum); !takes(list, before) {
			told = append(told, w.tell)
		}
	}
	t.mu.Unlock()
	for _, tell := range told {
		tell()
	}
}

// takes reports whether a token is accepted for the same principal with the same groups.
func takes(list []token, known token) bool {
	now, ok := find(list, known.sum)
	return ok && now.name == known.name && slices.Equal(now.groups, known.groups)
}

// onDrop calls f when a token is no longer accepted, until stop is called. It calls f at once if the token
// is already not accepted.
func (t *Tokens) onDrop(known token, f func()) (stop func()) {
	w := &watcher{known.sum, f}
	t.mu.Lock()
	if !takes(t.list, known) {
		t.mu.Unlock()
		f()
		return func() {}
	}
	defer t.mu.Unlock()
	if t.watchers == nil {
		t.watchers = map[*watcher]struct{}{}
	}
	t.watchers[w] = struct{}{}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.watchers, w)
	}
}

// Count returns the number of accepted tokens.
func (t *Tokens) Count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.list)
}
