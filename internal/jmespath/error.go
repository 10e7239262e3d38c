package jmespath

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/jmespath/go-jmespath"
)

// tokenWords maps token names in go-jmespath errors to readable words.
var tokenWords = map[string]string{
	"tStar": "'*'", "tDot": "'.'", "tFilter": "'[?'", "tFlatten": "'[]'", "tLparen": "'('", "tRparen": "')'", "tLbracket": "'['", "tRbracket": "']'",
	"tLbrace": "'{'", "tRbrace": "'}'", "tOr": "'||'", "tPipe": "'|'", "tNumber": "a number", "tUnquotedIdentifier": "a name", "tQuotedIdentifier": "a quoted name",
	"tComma": "','", "tColon": "':'", "tLT": "'<'", "tLTE": "'<='", "tGT": "'>'", "tGTE": "'>='", "tEQ": "'=='", "tNE": "'!='", "tJSONLiteral": "a literal in backquotes",
	"tStringLiteral": "a text in quotes", "tCurrent": "'@'", "tExpref": "'&'", "tAnd": "'&&'", "tNot": "'!'", "tEOF": "the end", "tUnknown": "an unknown character",
}

var tokenName = regexp.MustCompile(`\bt[A-Z]\w*`)

// inWords explains a syntax error in words, with its column.
func inWords(syntax jmespath.SyntaxError) error {
	text := strings.TrimPrefix(syntax.Error(), "SyntaxError: ")
	text = tokenName.ReplaceAllStringFunc(text, func(name string) string {
		if words, ok := tokenWords[name]; ok {
			return words
		}
		return name
	})
	text = strings.Replace(strings.ToLower(text[:1])+text[1:], ", received: ", ", got ", 1)
	at := min(max(syntax.Offset, 0), len(syntax.Expression))
	return fmt.Errorf("not a JMESPath expression: column %d: %s", utf8.RuneCountInString(syntax.Expression[:at])+1, text)
}
