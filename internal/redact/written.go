package redact

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// secretForm is the format of the secrets of a well-known service.
type secretForm struct {
	kind, variable string
	// needs are texts in folded case, at least one of which occurs in every such secret. The expression need not run on
	// other texts.
	needs []string
	form  func() *regexp.Regexp
}

// lazily compiles an expression on first use, since most programs do not look for secrets.
func lazily(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// secretForms are the known formats of secrets. The first match names the variable.
var secretForms = []secretForm{
	{"a private key", "PRIVATE_KEY", []string{"private key"}, lazily(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----`)},
	{"a GitHub token", "GITHUB_TOKEN", []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"}, lazily(`\b(gh[pousr]_[A-Za-z0-9]{10,}|github_pat_[A-Za-z0-9_]{20,})`)},
	{"a GitLab token", "GITLAB_TOKEN", []string{"glpat-", "gldt-", "glrt-", "glptt-", "glsoat-", "glcbt-", "glft-"}, lazily(`\bgl(pat|dt|rt|ptt|soat|cbt|ft)-[A-Za-z0-9_-]{10,}`)},
	{"a Slack token", "SLACK_TOKEN", []string{"xox", "xapp-", "hooks.slack.com"}, lazily(`\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bxapp-[0-9]-[A-Za-z0-9-]{10,}|hooks\.slack\.com/services/T[A-Za-z0-9]+/B[A-Za-z0-9]+/[A-Za-z0-9]+`)},
	{"a Stripe key", "STRIPE_API_KEY", []string{"k_live_", "k_test_", "whsec_"}, lazily(`\b([sr]k_(live|test)|whsec)_[A-Za-z0-9]{10,}`)},
	{"an Anthropic key", "ANTHROPIC_API_KEY", []string{"sk-ant-"}, lazily(`\bsk-ant-[A-Za-z0-9_-]{8,}`)},
	{"an API key (sk-)", "OPENAI_API_KEY", []string{"sk-"}, lazily(`\bsk-[A-Za-z0-9_-]{8,}`)},
	{"a Google API key", "GOOGLE_API_KEY", []string{"aiza"}, lazily(`\bAIza[A-Za-z0-9_-]{20,}`)},
	{"a Google token", "GOOGLE_TOKEN", []string{"ya29.", "gocspx-"}, lazily(`\bya29\.[A-Za-z0-9_-]{10,}|\bGOCSPX-[A-Za-z0-9_-]{10,}`)},
	{"an AWS access key", "AWS_ACCESS_KEY_ID", []string{"akia", "asia"}, lazily(`\b(AKIA|ASIA)[A-Z0-9]{16}\b`)},
	{"an npm token", "NPM_TOKEN", []string{"npm_"}, lazily(`\bnpm_[A-Za-z0-9]{20,}`)},
	{"a Hugging Face token", "HF_TOKEN", []string{"hf_"}, lazily(`\bhf_[A-Za-z0-9]{20,}`)},
	{"a JSON Web Token", "API_TOKEN", []string{"eyj"}, lazily(`\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`)},
	{"a bearer token", "API_TOKEN", []string{"bearer "}, lazily(`(?i)\bbearer +[A-Za-z0-9._~+/-]{16,}=*`)},
	{"a basic credential", "API_CREDENTIAL", []string{"basic "}, lazily(`(?i)\bbasic +[A-Za-z0-9+/]{12,}=*`)},
	{"a password in a URL", "PASSWORD", []string{"@"}, lazily(`[a-z][a-z0-9+.-]*://[^/?#@\s"':{}$]*:[^/?#@\s"'{}$]+@`)},
	{"a key in a URL", "API_KEY", []string{"="}, lazily(`(?i)[?&](api[-_]?key|access[-_]?token|token|key|secret|password|sig(nature)?)=[^&#\s"'{}$]{8,}`)},
}

// WrittenOut returns the kind of secret in a text, such as "a GitHub token", and the usual environment variable for
// it; both are empty if the text has no secret. key is the name of the field with the text.
func WrittenOut(text, key string) (kind, variable string) {
	folded := Fold(text)
	for _, t := range secretForms {
		if !HasAny(folded, t.needs) || !t.form().MatchString(text) {
			continue
		}
		if t.kind == "an API key (sk-)" && strings.Contains(strings.ToLower(key), "anthropic") {
			return t.kind, "ANTHROPIC_API_KEY"
		}
		return t.kind, t.variable
	}
	return "", ""
}

// Written returns a text with the secrets that [WrittenOut] finds masked. A text with a private key is masked whole.
func Written(text string) string {
	folded := Fold(text)
	for i, t := range secretForms {
		if !HasAny(folded, t.needs) || !t.form().MatchString(text) {
			continue
		}
		if i == 0 {
			return Mask // the key itself follows what the expression matches
		}
		text = t.form().ReplaceAllString(text, Mask)
	}
	return text
}

var (
	// unformed matches long texts that are neither a path nor prose, so they may be a secret without a known format.
	unformed    = regexp.MustCompile(`^[A-Za-z0-9_~+=-][A-Za-z0-9._~+/=-]{15,}$`)
	notSecret   = regexp.MustCompile(`(?i)[-_](file|path|dir|url|uri|name|env|type|ttl|length|id)$`)
	notVariable = regexp.MustCompile(`[^A-Za-z0-9]+`)
)

// Named returns the environment variable for a value that looks like a secret without a known format, because of its
// name, such as X-Api-Key or DB_PASSWORD.
func Named(name, value string) (variable string, ok bool) {
	if !secretName.MatchString(name) || notSecret.MatchString(name) || !unformed.MatchString(value) ||
		!strings.ContainsAny(value, "0123456789") || !strings.ContainsFunc(value, unicode.IsLetter) {
		return "", false
	}
	return strings.ToUpper(strings.Trim(notVariable.ReplaceAllString(name, "_"), "_")), true
}

// MayHoldSecret returns false for a JSON text that certainly contains no secret that [WrittenOut] finds.
func MayHoldSecret(text string) bool {
	folded := Fold(text)
	return strings.Contains(text, `\u`) || slices.ContainsFunc(secretForms, func(t secretForm) bool { return HasAny(folded, t.needs) })
}

// Fold folds the case of a text as (?i) of a regular expression does.
func Fold(text string) string {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return strings.ToLower(strings.ToUpper(text))
		}
	}
	return strings.ToLower(text)
}

// HasAny reports whether a text contains any of the others.
func HasAny(text string, of []string) bool {
	return slices.ContainsFunc(of, func(s string) bool { return strings.Contains(text, s) })
}
