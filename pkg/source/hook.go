package source

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

// HookPath is where a gateway takes webhooks.
const HookPath = "/hooks/git"

// The bounds of a webhook.
const (
	minSecret   = 16               // bytes
	maxDelivery = 25 << 20         // of GitHub
	maxAtOnce   = 4                // deliveries
	hookTimeout = 30 * time.Second // to send one
)

// signatureHeader is how GitHub, Gitea, Forgejo and others sign a delivery: "sha256=" and the
// HMAC-SHA256 of the body in hexadecimal.
const signatureHeader = "X-Hub-Signature-256"

// NewHook takes the webhook of a forge, signed with a secret, and calls pull for each. What the
// delivery says does not matter, and so neither does one that is sent again.
func NewHook(secret string, pull func()) (http.Handler, error) {
	if len(secret) < minSecret {
		return nil, errors.New("the secret of the webhook is too short: expected at least 16 characters, such as 'openssl rand -hex 32' prints")
	}
	return &hook{secret: []byte(secret), pull: pull, slots: make(chan struct{}, maxAtOnce)}, nil
}

type hook struct {
	secret []byte
	pull   func()
	slots  chan struct{}
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "expected POST", http.StatusMethodNotAllowed)
		return
	}
	text, ok := strings.CutPrefix(r.Header.Get(signatureHeader), "sha256=")
	given, err := hex.DecodeString(text)
	if !ok || err != nil || len(given) != sha256.Size {
		http.Error(w, "expected the header "+signatureHeader+": sha256=HMAC", http.StatusUnauthorized)
		return
	}
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	default:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many deliveries at once", http.StatusServiceUnavailable)
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(hookTimeout)) // not every connection has one
	mac := hmac.New(sha256.New, h.secret)
	if _, err := io.Copy(mac, http.MaxBytesReader(w, r.Body, maxDelivery)); err != nil {
		code := http.StatusBadRequest
		if large := new(http.MaxBytesError); errors.As(err, &large) {
			code = http.StatusRequestEntityTooLarge
		}
		http.Error(w, "the delivery cannot be read: "+http.StatusText(code), code)
		return
	}
	if !hmac.Equal(mac.Sum(nil), given) {
		http.Error(w, "the signature is not that of the secret", http.StatusUnauthorized)
		return
	}
	h.pull()
	w.WriteHeader(http.StatusAccepted)
}
