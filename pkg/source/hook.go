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

// HookPath is where a gateway takes webhooks.
const HookPath = "/hooks/git"

// The bounds of a webhook.
const (
	minSecret = 16 // bytes
	// MaxDelivery is the largest delivery of GitHub.
	MaxDelivery = 25 << 20
)

// hookForm is how forges show that they know the secret of a webhook.
type hookForm struct {
	header, prefix string
	token          bool // it is the secret itself; else the HMAC-SHA256 of the body in hexadecimal
}

// hookForms are looked for in this order; the first header that a delivery has counts.
var hookForms = []hookForm{
	{header: "X-Hub-Signature-256", prefix: "sha256="},             // GitHub, Gitea, Forgejo
	{header: "X-Gitea-Signature"}, {header: "X-Forgejo-Signature"}, // without the others
	{header: "X-Gogs-Signature"}, {header: "X-Hub-Signature", prefix: "sha256="}, // Gogs; Bitbucket
	{header: "X-Gitlab-Token", token: true}, // GitLab
}

// NewHook takes the webhook of a forge, which shows that it knows a secret, and calls pull for
// each. What the delivery says does not matter, and so neither does one that is sent again.
func NewHook(secret string, pull func()) (http.Handler, error) {
	if len(secret) < minSecret {
		return nil, errors.New("the secret of the webhook is too short: expected at least 16 characters, such as 'openssl rand -hex 32' prints")
	}
	return &hook{secret: []byte(secret), pull: pull}, nil
}

// mismatch follows the header of a delivery whose sender does not know the secret.
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
	if form.token && !hmac.Equal(digest(h.secret), given) { // nothing of the body is needed to say so
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

// shown returns how a delivery shows that it knows the secret, and the HMAC, or the digest of
// the secret, that it has; nil for none.
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

// digest makes secrets of one length, so that comparing them takes the same time.
func digest(secret []byte) []byte {
	sum := sha256.Sum256(secret)
	return sum[:]
}
