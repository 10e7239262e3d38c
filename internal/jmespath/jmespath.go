// Package jmespath compiles and applies untrusted JMESPath expressions (jmespath.org). Their size
// is bounded, errors name the column, and nothing panics.
package jmespath

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jmespath/go-jmespath"
)

// Limits of an expression. The length is limited because the parser recurses. A flattened ([]) list
// literal ([a, b]) makes its input longer, so that growth is limited too.
const (
	maxLength = 16 << 10 // bytes
	maxGrowth = 1 << 12  // factor
)

// Expression is a compiled expression. It may be used by several goroutines.
type Expression struct{ path *jmespath.JMESPath }

// Compile parses an expression. The error names the problem and the column.
func Compile(text string) (*Expression, error) {
	return compile(text, func(e jmespath.SyntaxError) jmespath.SyntaxError { return e })
}

// compile is Compile. moved maps the position of an error to the text that the user wrote.
func compile(text string, moved func(jmespath.SyntaxError) jmespath.SyntaxError) (e *Expression, err error) {
	defer func() {
		if r := recover(); r != nil {
			e, err = nil, fmt.Errorf("the expression cannot be read: %v", r)
		}
	}()
	if len(text) > maxLength {
		return nil, fmt.Errorf("the expression has %d bytes: at most %d are read", len(text), maxLength)
	}
	path, err := jmespath.Compile(text)
	if syntax, ok := errors.AsType[jmespath.SyntaxError](err); ok {
		return nil, inWords(moved(syntax))
	}
	if err != nil {
		return nil, fmt.Errorf("not a JMESPath expression: %w", err)
	}
	if growth(text) > maxGrowth {
		return nil, fmt.Errorf("the expression can enlarge its input more than %d times: use fewer or shorter lists [a, b]", maxGrowth)
	}
	return &Expression{path}, nil
}

// Search applies the expression to a document of maps, lists, float64, text, booleans and nil.
func (e *Expression) Search(doc any) (found any, err error) {
	defer func() {
		if r := recover(); r != nil {
			found, err = nil, fmt.Errorf("the expression cannot be applied: %v", r)
		}
	}()
	return e.path.Search(doc)
}

// growth returns the maximum factor by which the result of an expression can be longer than its
// input: the product of the lengths of its list literals.
func growth(text string) int {
	product, open := 1, []int{}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\'', '"', '`':
			for i++; i < len(text) && text[i] != c; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '[', '(', '{':
			items := 0 // for a bracket that is not a list literal
			if rest := strings.TrimLeft(text[i+1:], " \t\r\n"); c == '[' && rest != "" && !strings.ContainsRune("]?*:-0123456789", rune(rest[0])) {
				items = 1
			}
			open = append(open, items)
		case ',':
			if n := len(open) - 1; n >= 0 && open[n] > 0 {
				open[n]++
			}
		case ']', ')', '}':
			if n := len(open) - 1; n >= 0 {
				product = min(product*max(open[n], 1), maxGrowth+1)
				open = open[:n]
			}
		}
	}
	return product
}
