package source_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"toolctl.dev/toolctl/pkg/source"
)

func TestHook(t *testing.T) {
	const secret = "0123456789abcdef0123456789abcdef"
	var pulls atomic.Int64
	h, err := source.NewHook(secret, func() { pulls.Add(1) })
	if err != nil {
		t.Fatal(err)
	}
	sign := func(secret, body string) string {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(body))
		return "sha256=" + hex.EncodeToString(mac.Sum(nil))
	}
	const body = `{"ref":"refs/heads/main"}`
	bare := func(secret, body string) string { return strings.TrimPrefix(sign(secret, body), "sha256=") }
	for name, c := range map[string]struct {
		method, body string
		header       map[string]string
		code         int
	}{
		"Gitea":                            {http.MethodPost, body, map[string]string{"X-Gitea-Signature": bare(secret, body)}, http.StatusAccepted},
		"Forgejo":                          {http.MethodPost, body, map[string]string{"X-Forgejo-Signature": bare(secret, body)}, http.StatusAccepted},
		"Gogs":                             {http.MethodPost, body, map[string]string{"X-Gogs-Signature": bare(secret, body)}, http.StatusAccepted},
		"Bitbucket":                        {http.MethodPost, body, map[string]string{"X-Hub-Signature": sign(secret, body)}, http.StatusAccepted},
		"GitHub, with its SHA-1":           {http.MethodPost, body, map[string]string{"X-Hub-Signature-256": sign(secret, body), "X-Hub-Signature": "sha1=00"}, http.StatusAccepted},
		"GitLab":                           {http.MethodPost, body, map[string]string{"X-Gitlab-Token": secret}, http.StatusAccepted},
		"GitLab, another token":            {http.MethodPost, body, map[string]string{"X-Gitlab-Token": secret + "0"}, http.StatusUnauthorized},
		"GitLab, a part of the token":      {http.MethodPost, body, map[string]string{"X-Gitlab-Token": secret[1:]}, http.StatusUnauthorized},
		"GitLab, an HMAC for a token":      {http.MethodPost, body, map[string]string{"X-Gitlab-Token": bare(secret, body)}, http.StatusUnauthorized},
		"GitLab, larger than allowed":      {http.MethodPost, strings.Repeat(" ", 25<<20+1), map[string]string{"X-Gitlab-Token": secret}, http.StatusRequestEntityTooLarge},
		"Gitea, the token for an HMAC":     {http.MethodPost, body, map[string]string{"X-Gitea-Signature": secret}, http.StatusUnauthorized},
		"Gitea, another body":              {http.MethodPost, body + " ", map[string]string{"X-Gitea-Signature": bare(secret, body)}, http.StatusUnauthorized},
		"SHA-1 alone":                      {http.MethodPost, body, map[string]string{"X-Hub-Signature": "sha1=" + bare(secret, body)[:40]}, http.StatusUnauthorized},
		"a wrong signature, a right token": {http.MethodPost, body, map[string]string{"X-Hub-Signature-256": sign("another", body), "X-Gitlab-Token": secret}, http.StatusUnauthorized},
		"no header of any":                 {http.MethodPost, body, nil, http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			pulls.Store(0)
			req := httptest.NewRequestWithContext(t.Context(), c.method, source.HookPath, strings.NewReader(c.body))
			for key, value := range c.header {
				req.Header.Set(key, value)
			}
			res := httptest.NewRecorder()
			h.ServeHTTP(res, req)
			want := int64(0)
			if c.code == http.StatusAccepted {
				want = 1
			}
			if res.Code != c.code || pulls.Load() != want || strings.Contains(res.Body.String(), secret) {
				t.Errorf("got %d %s, %d pulls", res.Code, res.Body, pulls.Load())
			}
		})
	}
	for name, c := range map[string]struct {
		method, body, signature string
		code, pulls             int
	}{
		"signed":              {http.MethodPost, body, sign(secret, body), http.StatusAccepted, 1},
		"an empty delivery":   {http.MethodPost, "", sign(secret, ""), http.StatusAccepted, 1},
		"another secret":      {http.MethodPost, body, sign("another", body), http.StatusUnauthorized, 0},
		"another body":        {http.MethodPost, body + " ", sign(secret, body), http.StatusUnauthorized, 0},
		"no signature":        {http.MethodPost, body, "", http.StatusUnauthorized, 0},
		"a short signature":   {http.MethodPost, body, "sha256=00", http.StatusUnauthorized, 0},
		"another algorithm":   {http.MethodPost, body, strings.Replace(sign(secret, body), "sha256", "sha1", 1), http.StatusUnauthorized, 0},
		"not hexadecimal":     {http.MethodPost, body, "sha256=" + strings.Repeat("x", 64), http.StatusUnauthorized, 0},
		"GET":                 {http.MethodGet, "", sign(secret, ""), http.StatusMethodNotAllowed, 0},
		"larger than allowed": {http.MethodPost, strings.Repeat(" ", 25<<20+1), sign(secret, body), http.StatusRequestEntityTooLarge, 0},
	} {
		t.Run(name, func(t *testing.T) {
			pulls.Store(0)
			req := httptest.NewRequestWithContext(t.Context(), c.method, source.HookPath, strings.NewReader(c.body))
			req.Header.Set("X-Hub-Signature-256", c.signature)
			res := httptest.NewRecorder()
			h.ServeHTTP(res, req)
			if res.Code != c.code || pulls.Load() != int64(c.pulls) {
				t.Errorf("got %d %s, %d pulls", res.Code, res.Body, pulls.Load())
			}
		})
	}
	if _, err := source.NewHook("short", nil); err == nil {
		t.Error("a short secret is taken")
	}
}
