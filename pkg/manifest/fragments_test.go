package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "toolctl.dev/toolctl/api/v1"
)

const kitPrompt = `apiVersion: promptkit.altairalabs.ai/v1alpha1
kind: PromptConfig
metadata: {name: kit}
spec:
`

func TestFragmentsOfPromptKit(t *testing.T) {
	write(t, map[string]string{
		"kit/prompts/a.yaml": kitPrompt + `  system_template: "{{voice}} {{rules}} {{who}} {{gone}} {{broken}}"
  fragments:
  - {name: voice, path: fragments/voice.txt, required: true}
  - {name: rules}
  - {name: gone, path: nowhere.txt}
  - {name: out, path: ../../../secret.txt}
  - {name: broken, path: fragments/broken.yaml}
  - nothing
`,
		"kit/prompts/fragments/broken.yaml": "this is: not: yaml:\n",
		"kit/prompts/fragments/voice.txt":   "Be kind to {{who}}.\n",
		"kit/prompts/fragments/rules.yaml":  "fragment_type: rules\ncontent: |\n  No promises.\n",
		"kit/prompts/b.yaml":                kitPrompt + "  system_template: \"{{.who}}\"\n  template_engine: {version: v1, syntax: \"{{.variable}}\"}\n",
		"kit/prompts/c.yaml":                kitPrompt + "  system_template: x\n  template_engine: {version: v1, syntax: \"{{variable}}\"}\n  fragments: {}\n",
		"secret.txt":                        "s",
	})
	read := func(name string) (*v1.Prompt, []string) {
		t.Helper()
		set, err := Load(t.Context(), []string{name}, Options{})
		if err != nil || len(set.Objects) != 1 {
			t.Fatalf("%v, %v", set, err)
		}
		return set.Objects[0].(*v1.Prompt), violationStrings(set.Violations)
	}
	p, violations := read("kit/prompts/a.yaml")
	if want := "Be kind to {{who}}. No promises. {{who}} {{gone}} {{broken}}"; p.Spec.SystemPrompt != want {
		t.Errorf("template is %q, want %q", p.Spec.SystemPrompt, want)
	}
	if len(violations) != 3 || !strings.Contains(violations[1], `warning: spec.fragments[2].path: file "nowhere.txt" does not exist`) ||
		!strings.Contains(violations[2], `warning: spec.fragments[3].path: file "../../../secret.txt" leaves the folder`) ||
		!strings.Contains(violations[0], `fragments/broken.yaml:1:1: warning: spec.fragments[4].path: not YAML`) {
		t.Errorf("errors are\n%s", strings.Join(violations, "\n"))
	}
	for name, want := range map[string]string{"kit/prompts/b.yaml": "go", "kit/prompts/c.yaml": "mustache"} {
		p, violations := read(name)
		if p.Spec.TemplateSyntax != want {
			t.Errorf("%s: syntax is %q, want %q", name, p.Spec.TemplateSyntax, want)
		}
		if diff := cmp.Diff([]string(nil), violations); diff != "" {
			t.Errorf("%s: errors (-want +got):\n%s", name, diff)
		}
	}
}
