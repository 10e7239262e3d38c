package inspect

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/redact"
)

// rule is one kind of instruction-like text; the package comment lists them.
type rule struct {
	name string
	says string
	// needs are folded texts. Every match contains at least one of these texts, so that the expression can be
	// skipped for the many texts that contain no such text.
	needs []string
	re    func() *regexp.Regexp
}

// gap matches a few words of one sentence.
const gap = `(?:[^.!?\n]{0,40}?[\s"'(,])??`

// phrase returns an expression in which a space matches any white space. It compiles on first use, because most
// programs inspect nothing.
func phrase(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)` + strings.ReplaceAll(expr, " ", `\s+`))
	})
}

// rules use RE2 expressions, whose running time is linear in the text.
var rules = []rule{
	{"override", "it tells the model to ignore its instructions", []string{"ignore", "disregard", "forget", "override", "bypass"}, phrase(
		`\b(?:ignore|disregard|forget|override|bypass) ` + gap +
			`(?:previous|prior|earlier|preceding|foregoing|above|system|all (?:of )?your|your (?:own )?(?:previous|prior|original|safety)) ` + gap +
			`(?:instructions?|prompts?|rules|guidelines|directives|orders|guardrails|polic(?:y|ies))\b`)},
	{"override", "it tells the model to ignore its instructions", []string{"ignore", "disregard"}, phrase(
		`\b(?:ignore|disregard) (?:everything|anything|whatever|what) (?:else )?(?:above|before|you (?:were|have been)|the user)\b`)},
	{"conceal", "it tells the model to hide something from the user", []string{"user", "human"}, phrase(
		`\b(?:do not|don'?t|never|must not|mustn'?t|should not|shouldn'?t|without) (?:ever )?` +
			`(?:tell|inform|notify|alert|mention|reveal|disclose|say)(?:ing)? ` + gap + `(?:the |your )?(?:users?|humans?)\b`)},
	{"conceal", "it tells the model to hide something from the user", []string{"user"}, phrase(
		`\busers? (?:must|should|may|can) ?(?:not|never) (?:know|notice|see this|be (?:told|informed|made aware|aware))\b` +
			`|\bhide this from (?:the )?users?\b|\bregardless of what the user (?:says|said|asks|asked|wants)\b`)},
	{"role", "it gives the model another role", []string{"now", "instruction", "pretend"}, phrase(
		`\byou are now (?:an?|the|in) |\bfrom now on,? you (?:are|must|will|should|act)\b|\bnew (?:system )?instructions?\s?:|\bpretend (?:to be|that you are) `)},
	{"markup", "it imitates prompt markup", []string{"<", "inst]"}, phrase(
		`<\s?/?\s?important\s?>|<\|(?:im_start|im_end|system|endoftext|start_header_id|eot_id)\|>|\[/?INST\]|<</?SYS>>` +
			`|<\s?(?:system|instructions?|hidden|secret|admin|assistant)\s?>[\s\S]+?<\s?/\s?(?:system|instructions?|hidden|secret|admin|assistant)\s?>`)},
	{"credentials", "it names a file that holds credentials", []string{"/", `\`, "id_", "claude_desktop"}, phrase(
		`(?:~|\$HOME|%USERPROFILE%|/home/\w+|/root)[/\\]\.(?:ssh|aws|gnupg|kube|docker|cursor|netrc|npmrc|pypirc|claude|config[/\\]gcloud)\b` +
			`|\bid_(?:rsa|ed25519|ecdsa)\b|\bclaude_desktop_config\.json\b|/etc/shadow\b|\.aws/credentials\b`)},
	{"exfiltrate", "it asks the model to forward what it knows", []string{"conversation", "chat", "message", "prompt", "context", "instruction"}, phrase(
		`\b(?:pass|include|put|append|add|attach|provide|send|copy|paste|supply|repeat|output|print) ` + gap +
			`(?:the )?(?:(?:entire|full|whole|complete) (?:conversation|chat|message)(?: history)?|system prompt|contents? of your (?:context|instructions)|your (?:system prompt|instructions))\b`)},
	{"exfiltrate", "it asks the model to forward what it knows", []string{"://", "@"}, phrase(
		`\b(?:send|post|upload|forward|transmit|exfiltrate|leak|e?mail|bcc)\s[^.!?\n]{0,60}` +
			`\b(?:conversation|chat history|credentials?|api keys?|passwords?|private keys?|secrets?|access tokens?|environment variables?)\b` +
			`[^!?\n]{0,60}(?:https?://|[\w.+-]+@[\w-]+\.\w)`)},
}

// orders returns a finding for the first match of each rule.
func orders(s string) []v1.Violation {
	var fs []v1.Violation
	seen := map[string]bool{}
	folded := redact.Fold(s)
	for _, r := range rules {
		if seen[r.name] || !redact.HasAny(folded, r.needs) {
			continue
		}
		at := r.re().FindStringIndex(s)
		if at == nil {
			continue
		}
		seen[r.name] = true
		match := []rune(s[at[0]:at[1]])
		const longest = 80
		shown := excerpt(match, 0, min(len(match), longest))
		if len(match) > longest {
			shown = excerpt(match[:longest], 0, longest) + "…"
		}
		fs = append(fs, v1.Violation{
			Expected: "a description of the tool", Got: r.name,
			Message: fmt.Sprintf("instruction-like text (%s) at character %d: %q: %s", r.name, utf8.RuneCountInString(s[:at[0]])+1, shown, r.says),
		})
	}
	return fs
}
