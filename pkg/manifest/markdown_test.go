package manifest

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "toolctl.dev/toolctl/api/v1"
)

// TestFrontMatterOfAgents reads the front matter that people write for other agents.
func TestFrontMatterOfAgents(t *testing.T) {
	tests := []struct {
		name, in   string
		want       v1.PromptSpec
		violations []string
	}{
		{
			name: "a description with colons",
			in:   "---\nname: reviewer\ndescription: Use it for reviews. Examples: <example>Context: a change. user: \"Review it\"</example>\nmodel: sonnet\n---\nReview.\n",
			want: v1.PromptSpec{Name: "reviewer", Description: `Use it for reviews. Examples: <example>Context: a change. user: "Review it"</example>`, Model: "sonnet", Template: "Review."},
			violations: []string{
				`a.md:3:1: warning: spec.description: the text of "description" is not YAML and is used as plain text: quote it`,
			},
		},
		{
			name: "a description over lines that look like fields",
			in:   "---\nname: reviewer\ndescription: Use it for reviews.\n\nExamples:\n<example>\nuser: \"Review it\"\nassistant: \"I will\"\n</example>\ntools: Read, Grep\n---\nReview.\n",
			want: v1.PromptSpec{Name: "reviewer", Description: "Use it for reviews.\n\nExamples:\n<example>\nuser: \"Review it\"\nassistant: \"I will\"\n</example>", Tools: []string{"Read", "Grep"}, Template: "Review."},
			violations: []string{
				`a.md:3:1: warning: spec.description: the text of "description" is not YAML and is used as plain text: quote it`,
			},
		},
		{
			name: "a command's file",
			in:   "---\ndescription: Tag a release\nargument-hint: [tag] [message]\nallowed-tools: git-tag, git-log\n---\nTag it.\n",
			want: v1.PromptSpec{Description: "Tag a release", Tools: []string{"git-tag", "git-log"}, Template: "Tag it."},
			violations: []string{
				`a.md:3:1: warning: spec.argument-hint: unknown field "argument-hint": ignored`,
			},
		},
		{
			name:       "every tool, which is an alias in YAML",
			in:         "---\ntools: *\n---\nx\n",
			want:       v1.PromptSpec{Tools: []string{"*"}, Template: "x"},
			violations: []string{`a.md:2:1: warning: spec.tools: the text of "tools" is not YAML and is used as plain text: quote it`},
		},
		{
			name: "a schema of the answer by another name",
			in:   "---\ntitle: t\nformat:\n  type: object\n---\nx\n",
			want: v1.PromptSpec{Title: "t", Output: []byte(`{"type":"object"}`), Template: "x"},
		},
		{
			name:       "format beside output",
			in:         "---\noutput: {type: string}\nformat: {type: object}\n---\nx\n",
			want:       v1.PromptSpec{Output: []byte(`{"type":"string"}`), Template: "x"},
			violations: []string{`a.md:3:1: warning: spec.format: unknown field "format": ignored`},
		},
		{
			name:       "no front matter",
			in:         "# Answers short questions\n\nBe brief.\n",
			want:       v1.PromptSpec{Title: "Answers short questions", Template: "# Answers short questions\n\nBe brief."},
			violations: []string{`a.md:1:1: warning: no front matter: the whole text is the template; fields of a Prompt's spec may come before it, between two lines "---"`},
		},
		{
			name:       "front matter alone",
			in:         "---\ntitle: A small agent\nmodel: m\n---\n",
			want:       v1.PromptSpec{Title: "A small agent", Model: "m"},
			violations: []string{`a.md:1:1: warning: spec.template: a prompt needs spec.template or spec.system_prompt`},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			objects, violations := Decode("a.md", []byte(tt.in), Options{})
			if len(objects) != 1 {
				t.Fatalf("%d objects; errors %v", len(objects), violations)
			}
			if diff := cmp.Diff(tt.want, objects[0].(*v1.Prompt).Spec); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.violations, violationStrings(violations)); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

// TestBrokenFrontMatter: what is no text must be YAML, and the violation is YAML's own.
func TestBrokenFrontMatter(t *testing.T) {
	for name, in := range map[string]string{
		"input":                  "---\ndescription: a: b\ninput: {type: object\n---\nx\n",
		"name":                   "---\nname: [a\n---\nx\n",
		"a line before":          "---\nuser: a: b\ndescription: c: d\n---\nx\n",
		"fields of another sort": "---\nfoo: a: b\n---\nx\n",
	} {
		t.Run(name, func(t *testing.T) {
			objects, violations := Decode("a.md", []byte(in), Options{})
			if len(objects) != 0 || len(violations) != 1 || !strings.Contains(violations[0].Message, "not YAML: ") {
				t.Errorf("objects %v, errors %v", objects, violations)
			}
		})
	}
}

// FuzzFrontMatter: no markdown file makes the reader panic, violations have their place in
// it, and front matter that is never closed is always an error.
func FuzzFrontMatter(f *testing.F) {
	for _, s := range []string{
		"---\nname: a\n---\nx", "---\ndescription: a: b\n---\n", "---\ntools: *\nmodel: x\n---\n", "---\n", "# x\n", "---\nformat: {type: object}\nallowed-tools: [a]\n---\n{{.x}}",
		"---\ndescription: a\n\nuser: b\nuser: c\n<x>\n---\n", "\ufeff---\r\ninput:\r\n  a: &a [*a]\r\n---\r\n", "---\nname: \x00\n---\n", "---\n&a : *a\n---\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 64<<10 {
			return
		}
		objects, violations := Decode("a.md", data, Options{})
		lines := bytes.Count(data, []byte("\n")) + 2
		wrong := false
		for _, f := range violations {
			wrong = wrong || !f.IsWarning()
			if f.Source.File != "a.md" || f.Source.Line > lines || f.Message == "" {
				t.Fatalf("a error without a place or a message: %+v", f)
			}
		}
		if _, _, _, closed := splitFrontMatter(data); hasFrontMatter(data) && !closed && !wrong {
			t.Fatalf("front matter that is never closed was read: %v", objects)
		}
		for _, o := range objects {
			if o.Head().Kind != v1.KindPrompt || !o.Head().Broken() && !v1.IsName(o.Head().Metadata.Name) {
				t.Fatalf("a markdown file became %s", o.Head().Key())
			}
		}
	})
}
