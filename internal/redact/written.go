package redact

import (
	"regexp"
	"strings"
)

// secretForm is the form in which a well-known service writes its secrets.
type secretForm struct {
	kind, variable string
	form           *regexp.Regexp
}

// secretForms are looked for in every text of a manifest. The first that fits names the variable.
var secretForms = []secretForm{
	{"a private key", "PRIVATE_KEY", regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----`)},
	{"a GitHub token", "GITHUB_TOKEN", regexp.MustCompile(`\b(gh[pousr]_[A-Za-z0-9]{10,}|github_pat_[A-Za-z0-9_]{20,})`)},
	{"a GitLab token", "GITLAB_TOKEN", regexp.MustCompile(`\bgl(pat|dt|rt|ptt|soat|cbt|ft)-[A-Za-z0-9_-]{10,}`)},
	{"a Slack token", "SLACK_TOKEN", regexp.MustCompile(`\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bxapp-[0-9]-[A-Za-z0-9-]{10,}|hooks\.slack\.com/services/T[A-Za-z0-9]+/B[A-Za-z0-9]+/[A-Za-z0-9]+`)},
	{"a Stripe key", "STRIPE_API_KEY", regexp.MustCompile(`\b([sr]k_(live|test)|whsec)_[A-Za-z0-9]{10,}`)},
	{"an Anthropic key", "ANTHROPIC_API_KEY", regexp.MustCompile(`\bsk-ant-[A-Za-z0-9_-]{8,}`)},
	{"an API key (sk-)", "OPENAI_API_KEY", regexp.MustCompile(`\bsk-[A-Za-z0-9_-]{8,}`)},
	{"a Google API key", "GOOGLE_API_KEY", regexp.MustCompile(`\bAIza[A-Za-z0-9_-]{20,}`)},
	{"a Google token", "GOOGLE_TOKEN", regexp.MustCompile(`\bya29\.[A-Za-z0-9_-]{10,}|\bGOCSPX-[A-Za-z0-9_-]{10,}`)},
	{"an AWS access key", "AWS_ACCESS_KEY_ID", regexp.MustCompile(`\b(AKIA|ASIA)[A-Z0-9]{16}\b`)},
	{"an npm token", "NPM_TOKEN", regexp.MustCompile(`\bnpm_[A-Za-z0-9]{20,}`)},
	{"a Hugging Face token", "HF_TOKEN", regexp.MustCompile(`\bhf_[A-Za-z0-9]{20,}`)},
	{"a JSON Web Token", "API_TOKEN", regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`)},
	{"a bearer token", "API_TOKEN", regexp.MustCompile(`(?i)\bbearer +[A-Za-z0-9._~+/-]{16,}=*`)},
	{"a basic credential", "API_CREDENTIAL", regexp.MustCompile(`(?i)\bbasic +[A-Za-z0-9+/]{12,}=*`)},
	{"a password in a URL", "PASSWORD", regexp.MustCompile(`[a-z][a-z0-9+.-]*://[^/?#@\s"':{}$]*:[^/?#@\s"'{}$]+@`)},
	{"a key in a URL", "API_KEY", regexp.MustCompile(`(?i)[?&](api[-_]?key|access[-_]?token|token|key|secret|password|sig(nature)?)=[^&#\s"'{}$]{8,}`)},
}

// WrittenOut says what kind of secret a text holds, such as "a GitHub token", and the
// environment variable that one usually stands in; empty for none. key is the name that the
// text stands under.
func WrittenOut(text, key string) (kind, variable string) {
	for _, t := range secretForms {
		if !t.form.MatchString(text) {
			continue
		}
		if t.kind == "an API key (sk-)" && strings.Contains(strings.ToLower(key), "anthropic") {
			return t.kind, "ANTHROPIC_API_KEY"
		}
		return t.kind, t.variable
	}
	return "", ""
}
