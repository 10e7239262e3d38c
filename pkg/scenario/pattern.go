package scenario

import (
	"regexp/syntax"
	"strings"
)

// matching makes a text that a regular expression fits, for the expressions that
// RE2 knows; a word for all others.
func (g *generator) matching(pattern string) string {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return words[g.random.IntN(len(words))]
	}
	var b strings.Builder
	g.expand(&b, re)
	return b.String()
}

// expand writes what one expression fits. Repeats are kept short.
func (g *generator) expand(b *strings.Builder, re *syntax.Regexp) {
	if b.Len() > maxText {
		return
	}
	repeat := func(low, high int) {
		if high < 0 || high > low+3 {
			high = low + 3
		}
		for range low + g.random.IntN(high-low+1) {
			g.expand(b, re.Sub[0])
		}
	}
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		b.WriteRune(g.class(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteRune(rune('a' + g.random.IntN(26)))
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range re.Sub {
			g.expand(b, sub)
		}
	case syntax.OpAlternate:
		g.expand(b, re.Sub[g.random.IntN(len(re.Sub))])
	case syntax.OpStar:
		repeat(0, -1)
	case syntax.OpPlus:
		repeat(1, -1)
	case syntax.OpQuest:
		repeat(0, 1)
	case syntax.OpRepeat:
		repeat(re.Min, re.Max)
	}
}

// class is one character of a class, one that can be seen where there is one.
func (g *generator) class(ranges []rune) rune {
	var visible []rune
	for i := 0; i+1 < len(ranges); i += 2 {
		for r := max(ranges[i], '!'); r <= min(ranges[i+1], '~'); r++ {
			visible = append(visible, r)
		}
	}
	if len(visible) > 0 {
		return visible[g.random.IntN(len(visible))]
	}
	if len(ranges) > 0 {
		return ranges[0]
	}
	return 'a'
}
