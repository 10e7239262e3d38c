package server

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"time"
)

// seals makes and opens the requestState of MCP 2026-07-28 (basic/utilities, multi
// round-trip requests). A client can neither read nor alter it, and it is good for one
// principal, one request and a time. The key lives as long as the process, as the calls
// that it names do.
type seals struct{ aead cipher.AEAD }

// sealed is what a state says.
type sealed struct {
	Call    string    `json:"c"`
	Round   int       `json:"r"`
	Expires time.Time `json:"e"`
}

// maxState is the longest state that is looked at.
const maxState = 4096

func newSeals() seals {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // a key of 32 bytes is legal
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // so is this cipher
	}
	return seals{aead}
}

// binding is what a state is good for: a principal's request, however its arguments
// are written.
func binding(principal, method, name string, args any) []byte {
	h := sha256.New()
	enc := json.NewEncoder(h)
	_ = enc.Encode([]string{principal, method, name}) // strings
	raw, ok := args.(json.RawMessage)
	if !ok {
		raw, _ = json.Marshal(args) // a map of strings
	}
	var doc any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if len(raw) > 0 && d.Decode(&doc) == nil {
		raw, _ = json.Marshal(doc) // in the order of the keys
	}
	if string(raw) == "null" || len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	h.Write(raw)
	return h.Sum(nil)
}

func (s seals) seal(what sealed, bound []byte) string {
	plain, _ := json.Marshal(what) // a text, a number and a time
	nonce := make([]byte, s.aead.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nonce, nonce, plain, bound))
}

var errState = errors.New("requestState: it was altered, is of another request or principal, or has expired: make the request anew without it")

// open returns what a state says. It does not say which of its rules a state broke.
func (s seals) open(state string, bound []byte, now time.Time) (sealed, error) {
	if len(state) > maxState {
		return sealed{}, errState
	}
	data, err := base64.RawURLEncoding.Strict().DecodeString(state)
	if err != nil || len(data) < s.aead.NonceSize() {
		return sealed{}, errState
	}
	n := s.aead.NonceSize()
	plain, err := s.aead.Open(nil, data[:n], data[n:], bound)
	if err != nil {
		return sealed{}, errState
	}
	var what sealed
	if json.Unmarshal(plain, &what) != nil || !now.Before(what.Expires) {
		return sealed{}, errState
	}
	return what, nil
}
