package source

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"toolctl.dev/toolctl/internal/regular"
)

// signers verifies the signatures of commits.
type signers struct{ file string }

type keys struct {
	text    []byte
	openPGP bool
	digest  string
}

const maxKeys = 1 << 20

var armor = []byte("-----BEGIN PGP PUBLIC KEY BLOCK-----")

// read reads the file of keys, which may change while the program runs.
func (s *signers) read() (*keys, error) {
	text, err := regular.ReadFile(s.file)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the keys that sign commits: %w", err)
	case len(text) > maxKeys:
		return nil, fmt.Errorf("%s is larger than %d bytes", s.file, maxKeys)
	}
	sum := sha256.Sum256(text)
	k := &keys{text: text, openPGP: bytes.Contains(text, armor), digest: hex.EncodeToString(sum[:])}
	if k.openPGP {
		return k, nil
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 2 && !strings.HasPrefix(f[0], "#") && slices.ContainsFunc(f[1:], isKeyType) {
			return k, nil
		}
	}
	return nil, fmt.Errorf("%s: expected allowed signers of SSH, a line such as 'me@example.com ssh-ed25519 AAAA…' for each, or public keys of OpenPGP, as 'gpg --armor --export' prints them", s.file)
}

func isKeyType(s string) bool {
	return strings.HasPrefix(s, "ssh-") || strings.HasPrefix(s, "ecdsa-") || strings.HasPrefix(s, "sk-")
}

// verify returns an error for a commit that none of the keys signed.
func (s *signers) verify(ctx context.Context, g *runner, commit string) error {
	k, err := s.read()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "toolctl-keys-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "keys")
	if err := os.WriteFile(file, k.text, 0o600); err != nil {
		return err
	}
	v := *g
	// Signatures of other types than the keys must not start a program.
	v.config = append(slices.Clone(g.config), "gpg.x509.program=false")
	if k.openPGP {
		v.env = with(g.env, "GNUPGHOME="+dir)
		v.config = append(v.config, "gpg.ssh.program=false", "gpg.program=gpg", "gpg.openpgp.program=gpg", "gpg.minTrustLevel=undefined")
		if err := importKeys(ctx, &v, file); err != nil {
			return err
		}
	} else {
		v.config = append(v.config, "gpg.program=false", "gpg.openpgp.program=false", "gpg.ssh.program=ssh-keygen", "gpg.ssh.allowedSignersFile="+file, "gpg.minTrustLevel=fully")
	}
	if _, err := v.run(ctx, "verify-commit", "--raw", "--end-of-options", commit); err != nil {
		failed := new(gitError)
		if !errors.As(err, &failed) {
			return err
		}
		return &RevisionError{Revision: commit, Err: fmt.Errorf("the commit is not signed by one of the keys in %s", s.file)}
	}
	return nil
}

// importKeys imports the file of OpenPGP keys into a keyring.
func importKeys(ctx context.Context, r *runner, file string) error {
	err := r.start(ctx, "gpg", []string{"--batch", "--no-tty", "--quiet", "--no-autostart", "--import", file}, "--import", "", func(in io.Reader) error {
		_, err := io.Copy(io.Discard, io.LimitReader(in, maxOutput))
		return err
	})
	if err != nil {
		return fmt.Errorf("the keys that sign commits: %w", err)
	}
	return nil
}
