package schemas

import (
	"fmt"
	"strings"
)

// width is the most columns of a line of prose.
const width = 80

// Text returns the documentation as plain text, laid out like that of `kubectl
// explain`: prose is wrapped at 80 columns, and a Doc of all levels shows its
// fields as a tree without descriptions.
func (d Doc) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "KIND:       %s\nVERSION:    %s\n\n", d.Kind, d.Version)
	if d.Name != "" {
		fmt.Fprintf(&b, "FIELD: %s <%s>%s\n\n", d.Name, d.Type, mark(d.Required))
	}
	if len(d.Enum) > 0 {
		b.WriteString("ENUM:\n")
		for _, v := range d.Enum {
			b.WriteString("    " + v + "\n")
		}
		b.WriteByte('\n')
	}
	b.WriteString("DESCRIPTION:\n")
	for i, para := range strings.Split(d.Description, "\n\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		wrap(&b, "    ", para)
	}
	if d.Default != "" {
		b.WriteString("\nDEFAULT:\n")
		wrap(&b, "    ", d.Default)
	}
	if d.Example != "" {
		b.WriteString("\nEXAMPLE:\n")
		example := d.Example
		if d.Name != "" {
			example = d.Name + ": " + example
		}
		for line := range strings.SplitSeq(example, "\n") {
			b.WriteString(strings.TrimRight("    "+line, " ") + "\n")
		}
	}
	if len(d.Fields) > 0 {
		b.WriteString("\nFIELDS:\n")
		if d.recursive {
			tree(&b, "  ", d.Fields)
		} else {
			list(&b, d.Fields)
		}
	}
	return b.String()
}

func mark(required bool) string {
	if required {
		return " -required-"
	}
	return ""
}

func list(b *strings.Builder, fields []Field) {
	for i, f := range fields {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(b, "  %s\t<%s>%s\n", f.Name, f.Type, mark(f.Required))
		if len(f.Enum) > 0 {
			wrap(b, "  ", "enum: "+strings.Join(f.Enum, ", "))
		}
		if f.Default != "" {
			wrap(b, "  ", "default: "+f.Default)
		}
		wrap(b, "    ", f.Description)
	}
}

func tree(b *strings.Builder, indent string, fields []Field) {
	for _, f := range fields {
		fmt.Fprintf(b, "%s%s\t<%s>%s\n", indent, f.Name, f.Type, mark(f.Required))
		tree(b, indent+"  ", f.Fields)
	}
}

// wrap writes a paragraph in lines of at most width columns, longer only for a
// word that is longer. Columns are counted in characters.
func wrap(b *strings.Builder, indent, para string) {
	col := 0
	for _, word := range strings.Fields(para) {
		n := len([]rune(word))
		switch {
		case col == 0:
			b.WriteString(indent)
			col = len(indent)
		case col+1+n > width:
			b.WriteString("\n" + indent)
			col = len(indent)
		default:
			b.WriteByte(' ')
			col++
		}
		b.WriteString(word)
		col += n
	}
	if col > 0 {
		b.WriteByte('\n')
	}
}
