package oci

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	_ "crypto/sha512" // the hash of P-384 and P-521
)

// Signer is a private key.
type Signer struct {
	key crypto.Signer
	id  string
}

// ID returns the ID of the key: "sha256:" and the digest of its public part.
func (s *Signer) ID() string { return s.id }

// Keys are public keys. A signature by any of these keys is sufficient.
type Keys []publicKey

type publicKey struct {
	key crypto.PublicKey
	id  string
}

const (
	expectedPrivate = "expected an Ed25519 or ECDSA private key as PEM, as printed by 'openssl genpkey -algorithm ed25519'"
	expectedPublic  = "expected Ed25519 or ECDSA public keys as PEM, as printed by 'openssl pkey -in key.pem -pubout'"
)

// ReadSigner parses a private key.
func ReadSigner(text []byte) (*Signer, error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		var key any
		var err error
		switch block.Type {
		case "PRIVATE KEY":
			key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		case "EC PRIVATE KEY":
			key, err = x509.ParseECPrivateKey(block.Bytes)
		case "ENCRYPTED PRIVATE KEY":
			return nil, errors.New("the key is encrypted: " + expectedPrivate)
		default: // for example EC PARAMETERS
			continue
		}
		signer, ok := key.(crypto.Signer)
		if err != nil || !ok || !known(signer.Public()) {
			return nil, errors.New(expectedPrivate)
		}
		id, err := idOf(signer.Public())
		return &Signer{signer, id}, err
	}
	return nil, errors.New(expectedPrivate)
}

// ReadKeys parses one or more public keys.
func ReadKeys(text []byte) (Keys, error) {
	var keys Keys
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		if block.Type != "PUBLIC KEY" || err != nil || !known(key) {
			return nil, fmt.Errorf("%s; it contains %s", expectedPublic, strings.ToLower(block.Type))
		}
		id, err := idOf(key)
		if err != nil {
			return nil, err
		}
		keys = append(keys, publicKey{key, id})
	}
	if len(keys) == 0 {
		return nil, errors.New(expectedPublic)
	}
	return keys, nil
}

func known(key crypto.PublicKey) bool {
	switch k := key.(type) {
	case ed25519.PublicKey:
		return true
	case *ecdsa.PublicKey:
		return hashOf(k) != 0
	}
	return false
}

// hashOf returns the hash for ECDSA signatures with a key.
func hashOf(k *ecdsa.PublicKey) crypto.Hash {
	switch k.Curve {
	case elliptic.P256():
		return crypto.SHA256
	case elliptic.P384():
		return crypto.SHA384
	case elliptic.P521():
		return crypto.SHA512
	}
	return 0
}

func idOf(key crypto.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(der)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// signedText returns the text that the signature of a package covers.
func signedText(digest string) []byte { return []byte("toolctl.dev/v1 package\n" + digest + "\n") }

func (s *Signer) sign(digest string) ([]byte, error) {
	text := signedText(digest)
	if k, ok := s.key.Public().(*ecdsa.PublicKey); ok {
		h := hashOf(k)
		return s.key.Sign(rand.Reader, sum(h, text), h)
	}
	return s.key.Sign(rand.Reader, text, crypto.Hash(0))
}

func (k publicKey) signed(digest string, signature []byte) bool {
	text := signedText(digest)
	switch key := k.key.(type) {
	case ed25519.PublicKey:
		return ed25519.Verify(key, text, signature)
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(key, sum(hashOf(key), text), signature)
	}
	return false
}

func sum(h crypto.Hash, text []byte) []byte {
	w := h.New()
	w.Write(text)
	return w.Sum(nil)
}
