package source

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strings"
)

// HookPath is the path at which a gateway accepts webhooks.
const HookPath = "/hooks/git"

// Limits of a webhook.
const (
	minSecret = 16 // bytes
	// MaxDelivery is the maximum size of a delivery from GitHub.
	MaxDelivery = 25 << 20
)

// hookForm is how a Git host proves that it knows the secret of a webhook.
type hookForm struct {
	header, prefix string
	token          bool // the header contains the secret itself; if not, the HMAC-SHA256 of the body in hexadecimal
}

// hookForms are tried in this order; the first header in a delivery counts.
var hookForms = []hookForm{
	{header: "X-Hub-Signature-256", prefix: "sha256="},             // GitHub, Gitea, Forgejo
	{header: "X-Gitea-Signature"}, {header: "X-Forgejo-Signature"}, // used without the header above
	{header: "X-Gogs-Signature"}, {header: "X-Hub-Signature", prefix: "sha256="}, // Gogs; Bitbucket
	{header: "X-Gitlab-Token", token: true}, // GitLab
}

// NewHook handles the webhook of a Git host, which must prove that it knows a secret, and calls pull for each delivery.
// The content of a delivery is ignored, so a repeated delivery is harmless.
func NewHook(secret string, pull func()) (http.Handler, error) {
	if len(secret) < minSecret {
		return nil, errors.New("the secret of the webhook is too short: expected at least 16 characters, as printed by 'openssl rand -hex 32'")
	}
	return &hook{secret: []byte(secret), pull: pull}, nil
}

// mismatch follows the header in the error for a sender who does not know the secret.
const mismatch = " does not match: the webhook must use the secret of --hook-secret-file, and no proxy may change the body"

type hook struct {
	secret []byte
	pull   func()
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "expected POST", http.StatusMethodNotAllowed)
		return
	}
	form, given := shown(r)
	if given == nil {
		http.Error(w, "expected a signature in the header X-Hub-Signature-256: sha256=HMAC, or as Gitea, Forgejo, Gogs and Bitbucket send it, or the secret in X-Gitlab-Token", http.StatusUnauthorized)
		return
	}
	if form.token && !hmac.Equal(digest(h.secret), given) { // a wrong token needs no body to be refused
		http.Error(w, form.header+mismatch, http.StatusUnauthorized)
		return
	}
	mac := hmac.New(sha256.New, h.secret)
	body := io.Writer(mac)
	if form.token {
		body = io.Discard
	}
	if _, err := io.Copy(body, http.MaxBytesReader(w, r.Body, MaxDelivery)); err != nil {
		code := http.StatusBadRequest
		if large := new(http.MaxBytesError); errors.As(err, &large) {
			code = http.StatusRequestEntityTooLarge
		}
		http.Error(w, "the delivery cannot be read: "+http.StatusText(code), code)
		return
	}
	if !form.token && !hmac.Equal(mac.Sum(nil), given) {
		http.Error(w, form.header+mismatch, http.StatusUnauthorized)
		return
	}
	h.pull()
	w.WriteHeader(http.StatusAccepted)
}

// shown returns the form in which a delivery proves that it knows the secret, with its HMAC, or the digest of its
// token; nil if it has no proof.
func shown(r *http.Request) (hookForm, []byte) {
	for _, f := range hookForms {
		value := r.Header.Get(f.header)
		switch {
		case value == "":
			continue
		case f.token:
			return f, digest([]byte(value))
		}
		text, ok := strings.CutPrefix(value, f.prefix)
		if given, err := hex.DecodeString(text); ok && err == nil && len(given) == sha256.Size {
			return f, given
		}
		return f, nil
	}
	return hookForm{}, nil
}

// digest gives secrets the same length, so that comparisons take constant time.
func digest(secret []byte) []byte {
	sum := sha256.Sum256(secret)
	return sum[:]
}
