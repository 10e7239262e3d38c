package prompt_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/prompt"
)

func compile(t *testing.T, spec v1.PromptSpec) *prompt.Prompt {
	t.Helper()
	p, err := prompt.Compile(manifest(spec))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestArguments(t *testing.T) {
	tests := []struct {
		name string
		spec v1.PromptSpec
		want []v1.PromptArgument
	}{
		{
			name: "of the schema, in its order",
			spec: v1.PromptSpec{Template: "x", Input: raw(`{"type":"object","properties":{"zebra":{"title":"Z","description":"d"},"apple":{"default":1}},"required":["zebra","apple"]}`)},
			want: []v1.PromptArgument{{Name: "zebra", Title: "Z", Description: "d", Required: true}, {Name: "apple", Default: raw("1")}},
		},
		{
			name: "declared ones first, completed by the schema",
			spec: v1.PromptSpec{Template: "{{.city}}{{.more}}", Input: raw(trip), Arguments: []v1.PromptArgument{{Name: "items", Description: "own words"}, {Name: "city"}}},
			want: []v1.PromptArgument{{Name: "items", Description: "own words"}, {Name: "city", Required: true}, {Name: "days", Default: raw("3")}},
		},
		{
			name: "what the templates read",
			spec: v1.PromptSpec{SystemPrompt: "{{.b}}", Template: "{{.a}}{{.b}}"},
			want: []v1.PromptArgument{{Name: "a"}, {Name: "b"}},
		},
		{
			name: "a value that is no object",
			spec: v1.PromptSpec{Template: "{{.}}", Input: raw(`{"anyOf":[{"type":"string"},{"enum":[1,2]}]}`)},
			want: []v1.PromptArgument{{Name: "input", Description: "the prompt's input: a string or a number", Required: true}},
		},
		{name: "none", spec: v1.PromptSpec{Template: "x"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, compile(t, tt.spec).Arguments()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFromStrings(t *testing.T) {
	object := `{"type":"object","properties":{"s":{"type":"string"},"n":{"type":"number"},"l":{"type":"array"},"o":{"type":["object","null"]},"sn":{"type":["string","number"]},"any":{}}}`
	tests := []struct {
		name, input, want string
		args              map[string]string
	}{
		{name: "by the schema", input: object, args: map[string]string{"s": "5", "n": "5", "l": `["a"]`, "o": `null`, "sn": "5", "any": "5"}, want: `{"any":"5","l":["a"],"n":5,"o":null,"s":"5","sn":"5"}`},
		{name: "what is not valid JSON stays a text", input: object, args: map[string]string{"n": "five", "l": "[", "o": ""}, want: `{"l":"[","n":"five","o":""}`},
		{name: "no schema", args: map[string]string{"a": "<1>"}, want: `{"a":"<1>"}`},
		{name: "nothing", args: nil, want: `{}`},
		{name: "a string", input: `{"type":"string"}`, args: map[string]string{"input": `{"a":1}`}, want: `"{\"a\":1}"`},
		{name: "an array", input: `{"type":"array"}`, args: map[string]string{"input": `[1]`}, want: `[1]`},
		{name: "no value", input: `{"type":"array"}`, args: map[string]string{"other": "x"}, want: ``},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := compile(t, v1.PromptSpec{Template: "x", Input: raw(tt.input)}).FromStrings(tt.args); string(got) != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestComplete(t *testing.T) {
	var many []string
	for range 150 {
		many = append(many, `"a`+strings.Repeat("x", len(many))+`"`)
	}
	p := compile(t, v1.PromptSpec{Template: "{{.free}}", Input: raw(`{"properties":{"units":{"enum":["metric","Metre","us",null,5]},"on":{"type":"boolean"},"one":{"const":"only"},"many":{"enum":[` + strings.Join(many, ",") + `]}}}`)})
	for _, tt := range []struct {
		arg, prefix, want string
		total             int
		ok                bool
	}{
		{"units", "", "metric Metre us 5", 4, true},
		{"units", "me", "metric Metre", 2, true},
		{"units", "metricmetric", "", 0, true},
		{"on", "t", "true", 1, true},
		{"one", "", "only", 1, true},
		{"free", "", "", 0, true},
		{"absent", "", "", 0, false},
	} {
		got, total, ok := p.Complete(tt.arg, tt.prefix)
		if strings.Join(got, " ") != tt.want || total != tt.total || ok != tt.ok {
			t.Errorf("%s=%s: got %q of %d, %t", tt.arg, tt.prefix, got, total, ok)
		}
	}
	if got, total, _ := p.Complete("many", "a"); len(got) != 100 || total != 150 {
		t.Errorf("%d values of %d, want 100 of 150", len(got), total)
	}
}

func TestUnused(t *testing.T) {
	tests := []struct {
		name, vars string
		spec       v1.PromptSpec
		want       []string
	}{
		{name: "a slip", spec: v1.PromptSpec{Template: "{{.city}}"}, vars: `{"ctiy":1,"city":2}`, want: []string{`variable "ctiy" is not used by the prompt; did you mean "city"?`}},
		{name: "declared", spec: v1.PromptSpec{Template: "x", Arguments: []v1.PromptArgument{{Name: "a"}}}, vars: `{"a":1}`},
		{name: "the template reads all", spec: v1.PromptSpec{Template: "{{json .}}"}, vars: `{"a":1}`},
		{name: "no object", spec: v1.PromptSpec{Template: "x"}, vars: `"a"`},
		{name: "no JSON", spec: v1.PromptSpec{Template: "x"}, vars: `{"a"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, f := range compile(t, tt.spec).Unused(raw(tt.vars)) {
				got = append(got, f.Message)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckOutput(t *testing.T) {
	p := compile(t, v1.PromptSpec{Template: "x", Output: raw(`{"type":"object","required":["a"]}`)})
	if fs := p.CheckOutput(raw(`{"a":1}`)); len(fs) != 0 {
		t.Errorf("a right answer has errors: %v", fs)
	}
	if fs := p.CheckOutput(raw(`{}`)); len(fs) != 1 || fs[0].Path != "/a" {
		t.Errorf("errors are %v", fs)
	}
	if fs := p.CheckOutput(raw(`Sure!`)); len(fs) != 1 {
		t.Errorf("no JSON: errors are %v", fs)
	}
	if fs := compile(t, v1.PromptSpec{Template: "x"}).CheckOutput(raw(`anything`)); fs != nil {
		t.Errorf("without output: errors are %v", fs)
	}
}

func TestNamesTool(t *testing.T) {
	p := compile(t, v1.PromptSpec{Template: "x", Tools: []string{"get-*", "pay"}})
	for name, want := range map[string]bool{"get-weather": true, "pay": true, "pay-more": false, "": false} {
		if p.NamesTool(name) != want {
			t.Errorf("NamesTool(%q) is not %t", name, want)
		}
	}
}

func TestMessages(t *testing.T) {
	m := prompt.Messages{{Role: prompt.RoleSystem, Content: "s"}, {Role: prompt.RoleUser, Content: "u"}}
	if m.System() != "s" || m.User() != "u" || (prompt.Messages{}).System() != "" {
		t.Errorf("System %q, User %q", m.System(), m.User())
	}
	out, err := json.Marshal(m)
	if err != nil || string(out) != `[{"role":"system","content":"s"},{"role":"user","content":"u"}]` {
		t.Errorf("JSON is %s, %v", out, err)
	}
}
