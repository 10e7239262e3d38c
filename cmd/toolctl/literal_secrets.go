package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
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

// literalSecrets warns of the secrets that are written out in an object. A message says
// neither the secret nor a part of it.
func literalSecrets(o v1.Object) []v1.Violation {
	raw, err := json.Marshal(o)
	if err != nil {
		return nil
	}
	var doc map[string]any
	if json.Unmarshal(raw, &doc) != nil {
		return nil
	}
	return literals(nil, o.Head(), "/spec", doc["spec"], "")
}

func literals(found []v1.Violation, h *v1.Header, path string, v any, key string) []v1.Violation {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			found = literals(found, h, v1.Pointer(path, name), v[name], name)
		}
	case []any:
		for i, item := range v {
			found = literals(found, h, v1.Pointer(path, strconv.Itoa(i)), item, key)
		}
	case string:
		for _, t := range secretForms {
			if !t.form.MatchString(v) {
				continue
			}
			variable := t.variable
			if t.kind == "an API key (sk-)" && strings.Contains(strings.ToLower(key), "anthropic") {
				variable = "ANTHROPIC_API_KEY"
			}
			return append(found, v1.Violation{Path: path, Expected: "${" + variable + "}", Got: t.kind, Severity: v1.SeverityWarning, Source: h.Field(path),
				Message: fmt.Sprintf("%s is written out: put it into an environment variable and write ${%s}, and revoke it if the manifest was shared", t.kind, variable)})
		}
	}
	return found
}
