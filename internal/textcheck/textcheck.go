// Package textcheck checks the replies of models by rules that need no model, for the validators of prompts and the
// assertions of scenarios.
package textcheck

import (
	"encoding/json"
	"regexp"
	"strings"
)

// WordBoundary is the match mode for whole words. All other modes match any part of the text.
const WordBoundary = "word_boundary"

// Missing returns the patterns that a text does not contain, ignoring case.
func Missing(patterns []string, text string) (missing []string) {
	text = strings.ToLower(text)
	for _, p := range patterns {
		if !strings.Contains(text, strings.ToLower(p)) {
			missing = append(missing, p)
		}
	}
	return missing
}

// Found returns the first pattern that a text contains, ignoring case; "" if the text contains no pattern. With words
// it finds only whole words. If a pattern starts or ends with a character other than an ASCII letter, digit or
// underscore, as in C++ or café, that end need not be at a word boundary.
func Found(patterns []string, text string, words bool) string {
	for _, p := range patterns {
		has := len(Missing([]string{p}, text)) == 0
		if words {
			has = wholeWords(p).MatchString(text)
		}
		if has {
			return p
		}
	}
	return ""
}

// startsWord and endsWord report whether \b can match at the ends of a pattern.
var (
	startsWord = regexp.MustCompile(`^\w`)
	endsWord   = regexp.MustCompile(`\w$`)
)

// wholeWords returns an expression that matches a pattern as whole words.
func wholeWords(pattern string) *regexp.Regexp {
	expression := regexp.QuoteMeta(pattern)
	if startsWord.MatchString(pattern) {
		expression = `\b` + expression
	}
	if endsWord.MatchString(pattern) {
		expression += `\b`
	}
	return regexp.MustCompile(`(?i)` + expression)
}

var sentenceEnd = regexp.MustCompile(`[.!?]+`)

// Sentences counts the parts of a text between full stops, exclamation and question marks.
func Sentences(text string) int {
	n := 0
	for _, part := range sentenceEnd.Split(text, -1) {
		if strings.TrimSpace(part) != "" {
			n++
		}
	}
	if n == 0 && strings.TrimSpace(text) != "" {
		n = 1
	}
	return n
}

// bytesPerToken is the number of bytes that count as one token.
const bytesPerToken = 4

// Tokens estimates the number of tokens in a text.
func Tokens(text string) int { return len(text) / bytesPerToken }

var codeBlock = regexp.MustCompile("(?s)```(?:json)?[ \t]*\r?\n(.*?)\r?\n[ \t]*```")

// JSON returns the part of a text that should be JSON: all of it, with wrapped the first
// code block, or with extract the first object or array in it.
func JSON(text string, wrapped, extract bool) string {
	if m := codeBlock.FindStringSubmatch(text); wrapped && m != nil {
		return strings.TrimSpace(m[1])
	}
	if extract {
		for _, open := range []string{"{", "["} {
			var raw json.RawMessage
			if at := strings.Index(text, open); at >= 0 && json.NewDecoder(strings.NewReader(text[at:])).Decode(&raw) == nil {
				return string(raw)
			}
		}
	}
	return strings.TrimSpace(text)
}
