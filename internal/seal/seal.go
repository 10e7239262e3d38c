// Package seal seals texts that only holders of a key can read or create. Processes that share a key give these texts
// to clients and to each other.
package seal

import (
	"bufio"
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/perm"
	"toolctl.dev/toolctl/internal/regular"
)

const (
	keySize = 32
	// A text begins with the salt of its own key and the nonce. The salt makes a repeated pair of key and nonce
	// unlikely for any number of texts.
	saltSize  = 16
	nonceSize = 12
	overhead  = saltSize + nonceSize + 16
	// maxText is the maximum length of a text.
	maxText = 16 << 10
	// maxFile is the maximum size of a file of keys.
	maxFile = 4096
)

// Keys seal with the first of one or two keys and open with each. The methods are safe for concurrent use.
type Keys struct {
	set atomic.Pointer[[][keySize]byte] // one or two, never changed in place
}

// Random returns a new random key.
func Random() *Keys {
	var key [keySize]byte
	_, _ = rand.Read(key[:]) // never fails
	return of([][keySize]byte{key})
}

func of(set [][keySize]byte) *Keys {
	k := &Keys{}
	k.set.Store(&set)
	return k
}

// ReadFile reads a file of keys. It refuses a file that others than its owner and its group may read.
func ReadFile(path string) (*Keys, error) {
	if err := perm.Secret(path); err != nil {
		return nil, err
	}
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	k, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return k, nil
}

var errKeys = errors.New("expected one line of 64 hexadecimal digits, or two while the keys change: create one with: openssl rand -hex 32")

// Read reads one or two lines of 64 hexadecimal digits. Its errors do not show the input.
func Read(r io.Reader) (*Keys, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(raw) > maxFile:
		return nil, fmt.Errorf("more than %d bytes: %w", maxFile, errKeys)
	}
	var set [][keySize]byte
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		var key [keySize]byte
		if len(line) != 2*keySize {
			return nil, fmt.Errorf("line %d: got %s: %w", n, clip.Count(len(line), "character"), errKeys)
		}
		if _, err := hex.Decode(key[:], line); err != nil {
			return nil, fmt.Errorf("line %d: got other characters: %w", n, errKeys)
		}
		if key == ([keySize]byte{}) {
			return nil, fmt.Errorf("line %d: got a key of zeros: %w", n, errKeys)
		}
		set = append(set, key)
	}
	const most = 2
	if len(set) == 0 || len(set) > most {
		return nil, fmt.Errorf("got %d lines: %w", len(set), errKeys)
	}
	return of(set), nil
}

// Set replaces the keys by those of other.
func (k *Keys) Set(other *Keys) { k.set.Store(other.set.Load()) }

// Equal reports whether two have the same keys in the same order.
func (k *Keys) Equal(other *Keys) bool {
	a, b := *k.set.Load(), *other.set.Load()
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// Seal seals plain for a purpose, so that the text is not valid for another purpose. The text is URL-safe.
func (k *Keys) Seal(purpose string, plain []byte) string {
	out := make([]byte, saltSize+nonceSize, overhead+len(plain))
	_, _ = rand.Read(out) // never fails
	aead := newAEAD((*k.set.Load())[0], out[:saltSize], purpose)
	return base64.RawURLEncoding.EncodeToString(aead.Seal(out, out[saltSize:], plain, nil))
}

// Open returns the content of a text that was sealed for a purpose. It returns false if the text was not sealed for the
// purpose, was altered, or was sealed with other keys.
func (k *Keys) Open(purpose, text string) ([]byte, bool) {
	if len(text) > maxText {
		return nil, false
	}
	data, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(data) < overhead {
		return nil, false
	}
	for _, key := range *k.set.Load() {
		aead := newAEAD(key, data[:saltSize], purpose)
		if plain, err := aead.Open(nil, data[saltSize:saltSize+nonceSize], data[saltSize+nonceSize:], nil); err == nil {
			return plain, true
		}
	}
	return nil, false
}

// newAEAD returns AES-256-GCM with the key for one salt and purpose.
func newAEAD(key [keySize]byte, salt []byte, purpose string) cipher.AEAD {
	derived, err := hkdf.Key(sha256.New, key[:], salt, "toolctl "+purpose, keySize)
	if err != nil {
		panic(err) // the length is valid
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		panic(err) // the key has a valid length
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // the cipher is valid
	}
	return aead
}
