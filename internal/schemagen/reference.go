package schemagen

import (
	"bytes"
	"fmt"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/scenario"
)

// referenceFiles returns a page for each kind with a table of all its fields.
func referenceFiles(src *source) []file {
	var files []file
	for _, kind := range v1.Kinds() {
		var b bytes.Buffer
		fmt.Fprintf(&b, "<!-- %s -->\n# %s\n\n", notice, kind)
		text, blocks := typeComment(src.types[kind].doc)
		fmt.Fprintln(&b, text)
		for _, block := range blocks {
			fmt.Fprintf(&b, "\n```yaml\n%s```\n", block)
		}
		name := strings.ToLower(kind)
		fmt.Fprintf(&b, "\n## Fields\n\n`[]` stands for each item of a list, `*` for each key of a map. "+
			"`toolctl explain %s` prints the same text; [%s.json](../../schemas/%s.json) is the JSON Schema.\n\n", name, name, name)
		fmt.Fprintf(&b, "| field | type | required | default | description |\n| --- | --- | --- | --- | --- |\n")
		src.rows(&b, kind, "", map[string]bool{})
		files = append(files, file{"docs/reference/" + name + ".md", b.Bytes()})
	}
	return append(files, file{"docs/reference/assertions.md", assertionsPage()})
}

// assertionsPage returns the table of assertions of api/v1.
func assertionsPage() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "<!-- %s -->\n# Assertions\n\n", notice)
	b.WriteString("Assertions of a [Scenario](scenario.md) hold for a turn, or in `spec.assertions` for the whole run. " +
		"The answer is the last thing that the model said; in a turn without a model, the result of its last call.\n\n" +
		"| type | other names | params | holds when |\n| --- | --- | --- | --- |\n")
	list := func(names []string) string {
		all := make([]string, len(names))
		for i, n := range names {
			all[i] = code(n)
		}
		return strings.Join(all, ", ")
	}
	var unjudged []v1.AssertionType
	for _, t := range v1.AssertionTypes() {
		if t.Unjudged != "" {
			unjudged = append(unjudged, t)
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", code(t.Name), list(t.Aliases), list(scenario.AssertionParams(&t)), strings.ReplaceAll(t.Holds, "|", `\|`))
	}
	b.WriteString("\n## Not judged\n\ntoolctl knows these assertions but never evaluates them: they count in `N of M checks`, and `--strict` fails them.\n\n| type | because |\n| --- | --- |\n")
	for _, t := range unjudged {
		fmt.Fprintf(&b, "| %s | %s |\n", list(append([]string{t.Name}, t.Aliases...)), t.Unjudged)
	}
	return b.Bytes()
}

// rows writes a row for each field of a struct and of the structs below it. It skips structs in
// open, which are being written.
func (src *source) rows(b *bytes.Buffer, object, path string, open map[string]bool) {
	if open[object] {
		return
	}
	open[object] = true
	defer delete(open, object)
	for _, f := range src.types[object].fields {
		p := f.name
		if path != "" {
			p = path + "." + f.name
		}
		required, text, deflt := "", prose(f.text), prose(f.deflt)
		if f.mustHave {
			required = "yes"
		}
		if f.hasDefaultValue() {
			deflt = code(f.deflt)
		}
		example := f.example
		if path == "" && f.name == "kind" {
			example = object
		}
		if example != "" {
			text += " Example: " + code(example)
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", code(p), code(f.typ.String()), required, deflt, text)
		t := f.typ
		for t.elem != nil {
			if t.kind == kindArray {
				p += "[]"
			} else {
				p += ".*"
			}
			t = *t.elem
		}
		if t.kind == kindObject {
			src.rows(b, t.object, p, open)
		}
	}
}

// prose escapes text for use in a table, so that no part of it is markup.
func prose(s string) string {
	return strings.NewReplacer("|", `\|`, "*", `\*`, "<", "&lt;").Replace(s)
}

// code returns a code span for use in a table.
func code(s string) string { return "`" + strings.ReplaceAll(s, "|", `\|`) + "`" }
