package jmespath

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jmespath/go-jmespath"
)

// Condition is an expression that is either true or false.
type Condition struct{ expression *Expression }

// CompileCondition parses a condition. It extends JMESPath with numbers without backquotes:
// args.amount > 100. In JMESPath, a text in double quotes is a field name. CompileCondition refuses
// it in comparisons, because users nearly always mean a string.
func CompileCondition(text string) (*Condition, error) {
	numbered, added := quoteNumbers(text)
	if at := fieldCompared(numbered); at != nil {
		return nil, fmt.Errorf("%s is the name of a field: write text in single quotes, '%s'", numbered[at[0]:at[1]], strings.Trim(numbered[at[0]:at[1]], `"`))
	}
	e, err := compile(numbered, func(syntax jmespath.SyntaxError) jmespath.SyntaxError {
		syntax.Expression = text
		syntax.Offset -= before(added, syntax.Offset)
		return syntax
	})
	if err != nil {
		return nil, err
	}
	return &Condition{e}, nil
}

// Holds applies the condition. A comparison with a missing value is false.
func (c *Condition) Holds(doc any) (bool, error) {
	found, err := c.expression.Search(doc)
	if err != nil {
		return false, err
	}
	switch found := found.(type) {
	case bool:
		return found, nil
	case nil:
		return false, nil
	}
	return false, fmt.Errorf("gave %v: expected true or false", found)
}

var (
	quotedText = regexp.MustCompile("'(?:[^'\\\\]|\\\\.)*'|`(?:[^`\\\\]|\\\\.)*`|\"(?:[^\"\\\\]|\\\\.)*\"")
	number     = regexp.MustCompile(`-?\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b`)
	compared   = regexp.MustCompile(`[=<>!]=?\s*$`)
)

// quoteNumbers puts numbers other than indexes ([0], [1:2]) in backquotes. It returns the positions
// of the backquotes in the new text.
func quoteNumbers(text string) (string, []int) {
	var b strings.Builder
	var added []int
	put := func(plain string, base int) {
		last := 0
		for _, at := range number.FindAllStringIndex(plain, -1) {
			previous := strings.TrimRight(text[:base+at[0]], " \t\r\n")
			if strings.HasSuffix(previous, "[") || strings.HasSuffix(previous, ":") || inName(text, base+at[0]) {
				continue
			}
			b.WriteString(plain[last:at[0]])
			added = append(added, b.Len())
			b.WriteByte('`')
			b.WriteString(plain[at[0]:at[1]])
			added = append(added, b.Len())
			b.WriteByte('`')
			last = at[1]
		}
		b.WriteString(plain[last:])
	}
	from := 0
	for _, at := range quotedText.FindAllStringIndex(text, -1) {
		put(text[from:at[0]], from)
		b.WriteString(text[at[0]:at[1]])
		from = at[1]
	}
	put(text[from:], from)
	return b.String(), added
}

// inName reports whether the number at i belongs to the text before it, as in a.5.
func inName(text string, i int) bool { return i > 0 && strings.ContainsRune("._", rune(text[i-1])) }

// fieldCompared finds a double-quoted name in a comparison.
func fieldCompared(text string) []int {
	for _, at := range quotedText.FindAllStringIndex(text, -1) {
		if text[at[0]] == '"' && compared.MatchString(text[:at[0]]) {
			return at
		}
	}
	return nil
}

func before(sorted []int, offset int) int {
	n, _ := slices.BinarySearch(sorted, offset)
	return n
}
