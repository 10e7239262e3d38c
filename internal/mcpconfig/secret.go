package mcpconfig

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// lazily compiles a long expression on first use, because most commands import nothing.
func lazily(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// secretName matches names that contain a word for a secret: API_KEY,
// x-api-key, --token, GITHUB_PERSONAL_ACCESS_TOKEN, githubToken.
var secretName = lazily(`(?i)(?:^|[_\-.])(?:key|keys|token|tokens|secret|secrets|password|passwd|pwd|passphrase|pat|credential|credentials|apikey|authorization|cookie|dsn)$|[a-z](?-i:Keys?|Tokens?|Secret|Password|Passwd|Credentials?)$|(?:^|[_\-])(?:secret|password|token|apikey)[_\-]`)

// notSecretName matches names that contain such a word and do not name a secret.
var notSecretName = lazily(`(?i)(?:public|max|min|num|total|count|per|input|output|context|primary|foreign|sort|partition|cache|monkey|keyboard)[_\-]?(?:keys?|tokens?)$|tokens?[_\-](?:limit|budget|count|url|endpoint)|path$`)

// secretValue matches values that have the form of a known token.
var secretValue = lazily(`^(?:sk|pk|rk)[-_][A-Za-z0-9_\-]{12,}|^gh[opusr]_\w{20,}|^github_pat_\w{20,}|^glpat-[\w\-]{16,}|^xox[abposr]-[\w\-]{10,}|^xapp-[\w\-]{10,}|` +
	`^(?:AKIA|ASIA)[A-Z0-9]{16}$|^AIza[\w\-]{30,}|^ya29\.[\w\-]{20,}|^eyJ[\w\-]{8,}\.[\w\-]{8,}\.|^SG\.[\w\-]{16,}|^hf_\w{20,}|^npm_\w{20,}|^pypi-[\w\-]{16,}|^dop_v1_\w{20,}|` +
	`^shp(?:at|ss|ca|pa)_\w{20,}|^sq0[a-z]{3}-[\w\-]{16,}|^(?:ntn|secret)_\w{20,}|^lin_api_\w{16,}|^figd_[\w\-]{16,}|^tvly-[\w\-]{10,}|^BSA[\w\-]{20,}|-----BEGIN [A-Z ]*PRIVATE KEY`)

// withPassword matches an address that contains a password.
var withPassword = regexp.MustCompile(`^[a-z][a-z0-9+.\-]*://[^/@\s:]*:[^/@\s]+@`)

// looksSecret reports whether a literal must not be written into a manifest: because of its name, because of its
// form, or because it is long and random. Variables are not literals. Paths, addresses and numbers are not secrets,
// even if their name suggests it.
func looksSecret(name, value string) bool {
	v := strings.TrimSpace(value)
	switch {
	case v == "" || reference.MatchString(v) || strings.HasPrefix(v, "$"):
		return false
	case secretValue().MatchString(v), withPassword.MatchString(v):
		return true
	}
	if _, err := strconv.ParseFloat(v, 64); err == nil && len(v) < 12 || v == "true" || v == "false" {
		return false
	}
	if strings.Contains(v, "://") || strings.HasPrefix(v, "/") || strings.HasPrefix(v, "~") || strings.HasPrefix(v, "./") || strings.HasPrefix(v, "@") {
		return false
	}
	if secretName().MatchString(name) && !notSecretName().MatchString(name) {
		return true
	}
	return isRandom(v)
}

var randomForm = regexp.MustCompile(`^[A-Za-z0-9+/_\-]{32,}={0,2}$`)

// isRandom reports whether a text is one long word of digits and letters with the entropy of a key: at least 3.5 bits
// for each character, or 3 for hexadecimal digits. A UUID is an identifier and not a secret.
func isRandom(s string) bool {
	if !randomForm.MatchString(s) || !strings.ContainsAny(s, "0123456789") || strings.Contains(s, "/") && strings.Count(s, "/") > 2 {
		return false
	}
	if len(s) == 36 && strings.Count(s, "-") == 4 {
		return false
	}
	letters := strings.ContainsFunc(s, func(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' })
	hex := strings.Trim(strings.ToLower(s), "0123456789abcdef") == ""
	bits := entropy(s)
	return letters && (bits >= 3.5 && strings.ContainsFunc(s, func(r rune) bool { return r >= 'A' && r <= 'Z' }) || hex && bits >= 3)
}

// entropy returns the Shannon entropy of a text in bits for each character.
func entropy(s string) float64 {
	var n [256]int
	for _, c := range []byte(s) {
		n[c]++
	}
	bits := 0.0
	for _, k := range n {
		if k > 0 {
			p := float64(k) / float64(len(s))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}
