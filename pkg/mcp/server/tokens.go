package server

import (
	"bufio"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Tokens are the bearer tokens that a server takes, each with the name of its
// principal. They are kept as hashes.
type Tokens struct{ list []token }

type token struct {
	name string
	sum  [sha256.Size]byte
}

const maxTokens = 10_000

// ReadTokens reads a file of tokens: a line NAME:HEX for each, where HEX is the
// SHA-256 of the token. NAME is 1 to 64 letters, digits, ".", "_", "-" and "@", and
// may stand on several lines, so that a token can be replaced without a gap. Empty
// lines and lines that start with "#" count for nothing. The error names every
// faulty line and shows none.
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
		sum, err := hex.DecodeString(text)
		switch {
		case len(t.list) == maxTokens:
			return nil, fmt.Errorf("line %d: more than %d tokens", n, maxTokens)
		case !ok:
			errs = append(errs, fmt.Errorf("line %d: expected NAME:HEX, got no colon", n))
		case !isPrincipal(name):
			errs = append(errs, fmt.Errorf(`line %d: the name: expected 1 to 64 letters, digits, ".", "_", "-" and "@"`, n))
		case err != nil || len(sum) != sha256.Size:
			errs = append(errs, fmt.Errorf("line %d: the hash: expected the SHA-256 of the token as 64 hexadecimal digits, got %d characters", n, len(text)))
		default:
			t.list = append(t.list, token{name, [sha256.Size]byte(sum)})
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

func isPrincipal(name string) bool {
	const most = 64
	for _, c := range []byte(name) {
		if !strings.ContainsRune("._-@", rune(c)) && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return name != "" && len(name) <= most
}

// principal returns the name of a token. It takes as long for a wrong token as for a
// right one.
func (t *Tokens) principal(presented string) (string, bool) {
	sum := sha256.Sum256([]byte(presented))
	at := -1
	for i := range t.list {
		at = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(sum[:], t.list[i].sum[:]), i, at)
	}
	if at < 0 {
		return "", false
	}
	return t.list[at].name, true
}
