package schemagen

import (
	"fmt"
	"go/token"
	"slices"
	"strings"
)

// violations returns an error for each comment that breaks the rules of the package comment, sorted
// by place.
func (src *source) violations() []error {
	type violation struct {
		pos token.Position
		msg string
	}
	var all []violation
	add := func(pos token.Position, format string, args ...any) {
		all = append(all, violation{pos, fmt.Sprintf(format, args...)})
	}
	for _, t := range src.types {
		text, blocks := typeComment(t.doc)
		switch {
		case !strings.HasPrefix(text, t.name+" "):
			add(t.pos, "the comment of %s must start with its name", t.name)
		case !strings.HasSuffix(text, "."):
			add(t.pos, "the comment of %s must end with a period", t.name)
		}
		if len(blocks) > 1 {
			add(t.pos, "the comment of %s has more than one example", t.name)
		}
		for _, f := range t.fields {
			for _, msg := range f.violations() {
				add(f.pos, "%s.%s: %s", f.owner, f.goName, msg)
			}
		}
	}
	slices.SortFunc(all, func(a, b violation) int {
		if a.pos.Filename != b.pos.Filename {
			return strings.Compare(a.pos.Filename, b.pos.Filename)
		}
		return a.pos.Offset - b.pos.Offset
	})
	all = slices.Compact(all) // a field of an embedded struct occurs once for each type that embeds it
	errs := make([]error, len(all))
	for i, f := range all {
		errs[i] = fmt.Errorf("%s: %s", f.pos, f.msg)
	}
	return errs
}

func (f *field) violations() []string {
	var msgs []string
	doc := strings.TrimSpace(f.doc)
	if doc == "" {
		return []string{"there is no comment"}
	}
	if !strings.HasPrefix(doc, f.goName+" ") {
		msgs = append(msgs, "the comment must start with the Go name of the field")
	}
	// A comment may end with a question mark if its example is a question.
	if !strings.HasSuffix(doc, ".") && !(f.example != "" && strings.HasSuffix(doc, "?")) {
		msgs = append(msgs, "the comment must end with a period")
	}
	if !strings.HasSuffix(f.text, ".") && !strings.HasSuffix(f.text, "?") {
		msgs = append(msgs, "the text before the markers must end with a period; the order is Required, Default, Example")
	}
	for _, marker := range []string{" Required. ", " Default: ", " Example: "} {
		if slices.ContainsFunc([]string{f.text, f.deflt + ".", f.example + "."}, func(part string) bool { return strings.Contains(" "+part+" ", marker) }) {
			msgs = append(msgs, fmt.Sprintf("the marker %q appears twice or in the wrong place; the order is Required, Default, Example", strings.TrimSpace(marker)))
		}
	}
	switch {
	case f.mustHave && !f.required:
		msgs = append(msgs, `the check tag says required: the comment must say "Required."`)
	case f.required && !f.mustHave:
		msgs = append(msgs, `the comment says "Required.": the check tag must say required`)
	}
	if f.mustHave && f.deflt != "" {
		msgs = append(msgs, "a required field has no default")
	}
	if f.deflt != "" && f.oneof != nil && !strings.Contains(f.deflt, " ") && !slices.Contains(f.oneof, f.deflt) {
		msgs = append(msgs, fmt.Sprintf("default %q is not one of %s", f.deflt, strings.Join(f.oneof, ", ")))
	}
	if f.example != "" {
		if _, err := f.parse(f.example); err != nil {
			msgs = append(msgs, fmt.Sprintf("example %s: %v", f.example, err))
		}
	}
	return msgs
}
