package scenario

import (
	"fmt"
	"regexp/syntax"
	"strings"
)

// matching returns a text that matches a regular expression, or any word if the expression is not
// in the syntax of RE2.
func (g *generator) matching(pattern string) string {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return words[g.random.IntN(len(words))]
	}
	var b strings.Builder
	g.expand(&b, re)
	return b.String()
}

// expand writes a text that matches an expression, with few repetitions.
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

// class returns a character of a class, preferably a visible one.
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

var words = [...]string{"amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "inlet", "juniper", "kelp", "lagoon", "maple", "north", "opal", "pine"}

// text returns a text in a format, or words within the bounds of length.
func (g *generator) text(s map[string]any) any {
	format, _ := s["format"].(string)
	day := func() string { return fmt.Sprintf("2026-%02d-%02d", 1+g.random.IntN(12), 1+g.random.IntN(28)) }
	clock := func() string {
		return fmt.Sprintf("%02d:%02d:%02dZ", g.random.IntN(24), g.random.IntN(60), g.random.IntN(60))
	}
	word := words[g.random.IntN(len(words))]
	switch format {
	case "date":
		return day()
	case "time":
		return clock()
	case "date-time":
		return day() + "T" + clock()
	case "duration":
		return fmt.Sprintf("PT%dM", 1+g.random.IntN(59))
	case "email", "idn-email":
		return word + "@example.com"
	case "hostname", "idn-hostname":
		return word + ".example.com"
	case "uri", "url", "iri", "uri-reference", "iri-reference":
		return "https://example.com/" + word
	case "uuid":
		return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", g.random.Uint32(), g.random.IntN(1<<16), g.random.IntN(1<<12), g.random.IntN(1<<12), g.random.Int64N(1<<48))
	case "ipv4":
		return fmt.Sprintf("192.0.2.%d", 1+g.random.IntN(254))
	case "ipv6":
		return fmt.Sprintf("2001:db8::%x", 1+g.random.IntN(1<<16-1))
	}
	if pattern, ok := s["pattern"].(string); ok {
		return g.matching(pattern)
	}
	low, high := int(bound(s, "minLength", 0)), int(bound(s, "maxLength", maxText))
	text := []rune(word)
	for len(text) < min(low, maxText) {
		text = append(text, []rune(" "+words[g.random.IntN(len(words))])...)
	}
	if high >= 0 && len(text) > high {
		text = text[:high]
	}
	return strings.TrimSpace(string(text))
}
