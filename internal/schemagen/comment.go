package schemagen

import (
	"strings"

	doccomment "go/doc/comment"
)

// comment holds the parts of the doc comment of a field.
type comment struct {
	// text is the meaning without the markers. It starts with the name used in manifests.
	text string
	// required tells whether the marker "Required." is present.
	required bool
	// deflt and example are the texts after their markers, without the final point.
	deflt, example string
}

// parseComment splits the doc comment of a field into its parts. The markers are at the end, so it removes them from
// the end, the last marker first.
func parseComment(goName, name, doc string) comment {
	s := strings.Join(strings.Fields(doc), " ")
	var c comment
	if before, after, ok := cutLast(s, " Example: "); ok {
		s, c.example = before, strings.TrimSuffix(after, ".")
	}
	if before, after, ok := cutLast(s, " Default: "); ok {
		s, c.deflt = before, strings.TrimSuffix(after, ".")
	}
	s, c.required = strings.CutSuffix(s, " Required.")
	if rest, ok := strings.CutPrefix(s, goName+" "); ok {
		s = name + " " + rest
	}
	c.text = s
	return c
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// typeComment splits the doc comment of a type or a package into its prose, with one line for each paragraph, and its
// indented blocks, which are manifests.
func typeComment(doc string) (text string, blocks []string) {
	var p doccomment.Parser
	var paras []string
	for _, b := range p.Parse(doc).Content {
		switch b := b.(type) {
		case *doccomment.Code:
			blocks = append(blocks, b.Text)
		case *doccomment.Paragraph:
			var s strings.Builder
			plain(&s, b.Text)
			paras = append(paras, strings.Join(strings.Fields(s.String()), " "))
		}
	}
	return strings.Join(paras, "\n\n"), blocks
}

func plain(s *strings.Builder, text []doccomment.Text) {
	for _, t := range text {
		switch t := t.(type) {
		case doccomment.Plain:
			s.WriteString(string(t))
		case doccomment.Italic:
			s.WriteString(string(t))
		case *doccomment.Link:
			plain(s, t.Text)
		case *doccomment.DocLink:
			plain(s, t.Text)
		}
	}
}
