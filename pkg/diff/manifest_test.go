package diff_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/diff"
	"toolctl.dev/toolctl/pkg/manifest"
)

func objects(t testing.TB, docs ...string) []v1.Object {
	t.Helper()
	var all []v1.Object
	for i, doc := range docs {
		if doc == "" {
			continue
		}
		objs, violations := manifest.Decode(fmt.Sprintf("%d.yaml", i), []byte("apiVersion: toolctl.dev/v1\n"+doc), manifest.Options{Fields: true})
		for _, v := range violations {
			if !v.IsWarning() {
				t.Fatal(v)
			}
		}
		all = append(all, objs...)
	}
	return all
}

func compare(t testing.TB, before, after []v1.Object) *diff.Report {
	t.Helper()
	r, err := diff.NewChecker().Manifests(context.Background(), diff.Pairs(before, after), append(after, before...))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func tool(spec string) string {
	return "kind: Tool\nmetadata: {name: pay}\nspec: {description: Pays, " + spec + "}\n"
}

const schema = "input_schema: {type: object, properties: {n: {type: integer}}}"

// TestManifests has a line for each kind of change: class, pointer, what the reason holds,
// and the witness.
func TestManifests(t *testing.T) {
	policy := func(spec string) string {
		return "kind: ToolPolicy\nmetadata: {name: p}\nspec: {" + spec + "}\n"
	}
	const next = "---\napiVersion: toolctl.dev/v1\n"
	toolset := func(spec string) string {
		return "kind: Toolset\nmetadata: {name: desk}\nspec: {" + spec + "}\n"
	}
	server := func(spec string) string {
		return "kind: MCPServer\nmetadata: {name: fs}\nspec: {" + spec + "}\n"
	}
	prompt := func(spec string) string {
		return "kind: Prompt\nmetadata: {name: ask}\nspec: {" + spec + "}\n"
	}
	tests := []struct {
		name, before, after string
		want                []string // "class pointer: text in the reason [witness]"
	}{
		{"description", tool(schema), strings.Replace(tool(schema), "Pays", "Pays a bill", 1), []string{"neutral /spec/description: models read"}},
		{"required", tool(schema), tool("input_schema: {type: object, properties: {n: {type: integer}}, required: [n]}"), []string{`breaking /spec/input_schema/required: required property "n" is missing [{}]`}},
		{"wider", tool(schema), tool("input_schema: {type: object, properties: {n: {type: number}}}"), []string{"compatible /spec/input_schema/properties/n/type: arguments that were accepted are still accepted"}},
		{"coerced", tool(schema), tool("input_schema: {type: object, properties: {n: {type: string}}}"), []string{`unlike: coerced`}},
		{"closed", tool(schema), tool("input_schema: {type: object, properties: {n: {type: integer}}, additionalProperties: false}"), []string{"risky /spec/input_schema/additionalProperties: do"}},
		{"annotations of a schema", tool(schema), tool("input_schema: {type: object, properties: {n: {type: integer, description: How many}}}"), []string{"neutral /spec/input_schema/properties/n/description: models read"}},
		{"results may be more", tool(schema + ", output_schema: {type: integer}"), tool(schema + ", output_schema: {type: number}"), []string{"breaking /spec/output_schema/type: readers of the old schema may refuse"}},
		{"results are fewer", tool(schema + ", output_schema: {type: number}"), tool(schema + ", output_schema: {type: integer}"), []string{"compatible /spec/output_schema/type: within what was promised"}},
		{"results promised", tool(schema), tool(schema + ", output_schema: {type: number}"), []string{"compatible /spec/output_schema: within"}},
		{"results no longer promised", tool(schema + ", output_schema: {type: number}"), tool(schema), []string{"breaking /spec/output_schema: readers"}},
		{"results no longer enforced", tool(schema + ", output_schema: {type: number}"), tool(schema + ", output_schema: {type: number}, validation: {result: off}"), []string{"breaking /spec/validation/result: readers"}},
		{"arguments enforced", tool(schema + ", validation: {args: off}"), tool(schema + ", validation: {args: enforce}"), []string{"breaking /spec/validation/args: refused"}},
		{"arguments not enforced", tool(schema), tool(schema + ", validation: {args: warn}"), []string{"compatible /spec/validation/args: arguments that were accepted are still accepted"}},
		{"not coerced", tool(schema), tool(schema + ", validation: {coerce: false}"), []string{`breaking /spec/validation/coerce: no longer coerced [{"n":"1"}]`}},
		{"coerced again", tool(schema + ", validation: {coerce: false}"), tool(schema), []string{"compatible /spec/validation/coerce: are coerced"}},
		{"default written out", tool(schema), tool(schema + ", validation: {args: enforce}"), []string{"neutral /spec/validation/args: default"}},
		{"less time", tool(schema), tool(schema + ", timeout_ms: 1000"), []string{"risky /spec/timeout_ms: are cancelled after 1000 ms; the limit was 30000 ms"}},
		{"more time", tool(schema + ", timeout_ms: 1000"), tool(schema + ", timeout_ms: 2000"), []string{"compatible /spec/timeout_ms: 2000 ms"}},
		{"read only", tool(schema), tool(schema + ", hints: {read_only: true}"), []string{"looser /spec/hints/read_only: without asking", "looser /spec/hints/read_only: retried"}},
		{"destructive", tool(schema + ", hints: {destructive: false}"), tool(schema + ", hints: {destructive: true}"), []string{"tighter /spec/hints/destructive: ask a person"}},
		{"idempotent no more", tool(schema + ", hints: {idempotent: true}"), tool(schema), []string{"tighter /spec/hints/idempotent: no longer retried"}},
		{"consent", tool(schema), tool(schema + ", client: {consent: {required: true}}"), []string{`tighter /spec/client/consent/required: waits [{"tool":"pay","namespace":"default","was":"allow","now":"pending","rule":"spec.client.consent.required"}]`}},
		{"consent dropped", tool(schema + ", client: {consent: {required: true, message: Sure}}"), tool(schema + ", client: {consent: {message: Sure}}"), []string{`looser /spec/client/consent/required: no longer wait`, ""}},
		{"masked", tool(schema), tool(schema + ", redact: [password]"), []string{"risky /spec/redact: password is masked"}},
		{"shown", tool(schema + ", redact: [password]"), tool(schema), []string{"looser /spec/redact: password is no longer masked"}},
		{"not offered", tool(schema), tool(schema + ", preference: {enabled: false}"), []string{"risky /spec/preference/enabled: no longer listed"}},
		{"mock", tool(schema + ", mock_result: 1"), tool(schema + ", mock_result: 2"), []string{"unknown /spec/mock_result: mock"}},
		{"address", tool(schema + ", http: {url: 'https://a.example'}"), tool(schema + ", http: {url: 'https://b.example', allow_private_network: true}"), []string{"looser /spec/http/allow_private_network: private", "unknown /spec/http/url: different URL"}},
		{"new tool", "", tool(schema), []string{"compatible : new"}},
		{"gone tool", tool("input_schema: {type: object, properties: {n: {type: integer}}, required: [n]}"), "", []string{`breaking : deleted [{"n":0}]`}},

		{"tighter", policy("max_total_tool_calls: 5"), policy("max_total_tool_calls: 2"), []string{"tighter /spec/max_total_tool_calls: after 2 calls in the same turn"}},
		{"looser", policy("blocklist: [drop-*]"), policy("blocklist: []"), []string{`looser /spec/blocklist: drop-any`}},
		{"both", policy("blocklist: [a]"), policy("blocklist: [b]"), []string{"looser /spec/blocklist: refused is let through: a", "tighter /spec/blocklist: let through is refused: b"}},
		{"the same", policy("blocklist: [a, b]"), policy("blocklist: [b, a, b]"), []string{"compatible /spec/blocklist: the rules are equivalent"}},
		{"required choice", policy("tool_choice: auto"), policy("tool_choice: required"), []string{"tighter /spec/tool_choice: must call"}},
		{"new policy", "", policy("require_approval: [pay-*]"), []string{"tighter /spec/require_approval: held for approval: pay-any"}},
		{"gone policy", policy("allowlist: [get-*]"), "", []string{"looser /spec/allowlist: refused is let through"}},

		{"command", server("command: npx"), server("command: uvx"), []string{"unknown /spec/command: a different program"}},
		{"environment", server("command: npx, env: {A: a}"), server("command: npx, env: {A: b}, env_passthrough: [HOME]"), []string{"looser /spec/env_passthrough: HOME", "unknown /spec/env/A: different environment variables"}},
		{"filter", server("command: npx"), server("command: npx, tool_filter: {blocklist: ['write_*']}"), []string{"tighter /spec/tool_filter/blocklist: write_any"}},
		{"url", server("url: 'https://a.example/mcp'"), server("url: 'https://b.example/mcp'"), []string{"unknown /spec/url: different URL"}},
		{"locked", server("command: npx"), server("command: npx, locked: true"), []string{"tighter /spec/locked: no longer"}},
		{"unlocked", server("command: npx, locked: true"), server("command: npx"), []string{"looser /spec/locked: differ from toolctl.lock"}},
		{"override", server("command: npx, overrides: {w: {input_schema: {type: object}}}"), server("command: npx, overrides: {w: {input_schema: {type: object, required: [a]}}}"), []string{`breaking /spec/overrides/w/input_schema/required: "a" is missing [{}]`}},
		{"gone server", server("command: npx"), "", []string{"breaking : all of its tools"}},

		{"template", prompt("template: 'Hi {{.a}}', arguments: [{name: a, required: true}]"), prompt("template: 'Ho {{.a}}', arguments: [{name: a, required: true}]"), []string{"neutral /spec/template: a different text"}},
		{"a new variable", prompt("template: 'Hi'"), prompt("template: 'Hi {{.b}}'"), []string{`breaking /spec/template: variable "b" is missing [{}]`}},
		{"a new argument", prompt("template: 'Hi'"), prompt("template: 'Hi', arguments: [{name: b, required: true}]"), []string{`breaking /spec/arguments: "b" is missing [{}]`}},
		{"with a default", prompt("template: 'Hi'"), prompt("template: 'Hi', arguments: [{name: b, required: true, default: 1}]"), []string{"compatible /spec/arguments: arguments that were accepted are still accepted"}},
		{"tools", prompt("template: Hi, tools: [a, b]"), prompt("template: Hi, tools: [a]"), []string{"tighter /spec/tools: let through is refused: b"}},
		{"model", prompt("template: Hi, model: a"), prompt("template: Hi, model: b"), []string{"unknown /spec/model: model"}},
		{"answer", prompt("template: Hi, output: {type: integer}"), prompt("template: Hi, output: {type: string}"), []string{"breaking /spec/output/type: readers"}},
		{"toolset: fewer tools", toolset("") + next + tool(schema), toolset("exclude: [{tools: [pa*]}]") + next + tool(schema), []string{"breaking /spec/exclude: no longer in the toolset: pay"}},
		{"toolset: more prompts", toolset("include: [{tools: [x]}]") + next + prompt("template: Hi"), toolset("include: [{prompts: ['*']}]") + next + prompt("template: Hi"), []string{"looser /spec/include/0/prompts: now in the toolset: ask"}},
		{"toolset: nothing known", toolset("include: [{servers: [a]}]"), toolset("include: [{servers: [b]}]"), []string{"unknown /spec/include: MCP servers may"}},
		{"toolset: for some", toolset(""), toolset("groups: [ops]"), []string{"tighter /spec/groups: only some callers may use the toolset: ops"}},
		{"toolset: for all", toolset("groups: [ops]"), toolset(""), []string{"looser /spec/groups: every caller"}},
		{"toolset: for others", toolset("principals: [a, b]"), toolset("principals: [b, c]"), []string{"tighter /spec/principals: may no longer use the toolset: a", "looser /spec/principals: more callers may use the toolset: c"}},
		{"toolset: discovery", toolset("discovery: list, description: a"), toolset("discovery: search, description: b"), []string{"risky /spec/discovery: have to search", "neutral /spec/description: instructions"}},
		{"toolset: new", "", toolset(""), []string{"compatible : it is served at /mcp/desk"}},
		{"toolset: gone", toolset(""), "", []string{"breaking : its clients get 404"}},
		{"policy of a prompt", prompt("template: Hi, policy: {max_total_tool_calls: 2}"), prompt("template: Hi, policy: {max_total_tool_calls: 9}"), []string{"looser /spec/policy/max_total_tool_calls: after 2 calls"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := compare(t, objects(t, tt.before), objects(t, tt.after))
			if len(r.Changes) != 1 {
				t.Fatalf("%d changes", len(r.Changes))
			}
			c := r.Changes[0]
			var got []string
			for _, why := range c.Reasons {
				got = append(got, fmt.Sprintf("%s %s: %s [%s]", why.Class, why.Pointer, why.Reason, why.Witness))
			}
			if tt.name == "coerced" {
				if len(c.Reasons) != 1 || c.Reasons[0].Class != diff.Breaking || !strings.HasPrefix(got[0], "breaking /spec/input_schema/properties/n/type") {
					t.Errorf("got %q", got)
				}
				return
			}
			for _, want := range tt.want {
				class, rest, _ := strings.Cut(want, ": ")
				text, witness, has := strings.Cut(strings.TrimSuffix(rest, "]"), " [")
				ok := false
				for _, g := range got {
					ok = ok || strings.HasPrefix(g, class) && strings.Contains(g, text) && (!has || strings.HasSuffix(g, "["+witness+"]"))
				}
				if !ok {
					t.Errorf("want %q, got %q", want, got)
				}
			}
			if want := len(tt.want); len(got) != want && tt.want[want-1] != "" {
				t.Errorf("want %d reasons, got %q", want, got)
			}
			if c.Class != c.Reasons[0].Class {
				t.Errorf("the class is %s", c.Class)
			}
		})
	}
}

func TestLabelsThatPoliciesMatch(t *testing.T) {
	rules := "kind: ToolPolicy\nmetadata: {name: p}\nspec: {blocklist: ['*'], match: {labels: {team: pay}}}\n"
	with := strings.Replace(tool(schema), "{name: pay}", "{name: pay, labels: {team: pay}}", 1)
	r := compare(t, objects(t, with, rules), objects(t, tool(schema), rules))
	if len(r.Changes) != 1 || r.Changes[0].Class != diff.Looser || r.Changes[0].Reasons[0].Witness == nil {
		t.Errorf("got %+v", r.Changes)
	}
}

func TestSecretsAreMasked(t *testing.T) {
	doc := "kind: MCPServer\nmetadata: {name: fs}\nspec: {command: npx, args: ['--token=hunter%d'], env: {KEY: hunter%[1]d}, description: 'ghp_hunter0123456789%[1]d'}\n"
	r := compare(t, objects(t, fmt.Sprintf(doc, 1)), objects(t, fmt.Sprintf(doc, 2)))
	if len(r.Changes) != 1 || len(r.Changes[0].Fields) != 3 {
		t.Fatalf("got %+v", r.Changes)
	}
	for name, write := range writers(r) {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		if b.Len() == 0 || strings.Contains(b.String(), "hunter") {
			t.Errorf("%s: %s", name, &b)
		}
	}
}

func writers(r *diff.Report) map[string]func(*bytes.Buffer) error {
	return map[string]func(*bytes.Buffer) error{
		"text":     func(b *bytes.Buffer) error { return r.WriteText(b) },
		"markdown": func(b *bytes.Buffer) error { return r.WriteMarkdown(b) },
		"github":   func(b *bytes.Buffer) error { return r.WriteGitHub(b, "") },
		"json":     func(b *bytes.Buffer) error { return json.NewEncoder(b).Encode(r) },
	}
}

func TestValuesAreBounded(t *testing.T) {
	long := strings.Repeat("é", 5000)
	doc := "kind: Tool\nmetadata: {name: pay}\nspec: {description: " + long + "%d, " + schema + "}\n"
	r := compare(t, objects(t, fmt.Sprintf(doc, 1)), objects(t, fmt.Sprintf(doc, 2)))
	f := r.Changes[0].Fields[0]
	if !f.Cut || len(f.Old) > 600 || !json.Valid(f.Old) {
		t.Errorf("cut %v, %d bytes", f.Cut, len(f.Old))
	}
}

// What stands in manifests cannot break out of a line, a table or a workflow command.
func TestForeignTextIsHarmless(t *testing.T) {
	doc := "kind: Tool\nmetadata: {name: pay}\nspec:\n  description: Pays\n  input_schema:\n    type: object\n    properties: {\"a\\n::error::x|<b>`\\u202e\": {type: %s}}\n"
	r := compare(t, objects(t, fmt.Sprintf(doc, "integer")), objects(t, fmt.Sprintf(doc, "string")))
	for name, write := range writers(r) {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if strings.HasPrefix(line, "::error::") || name != "json" && strings.ContainsRune(line, '\u202e') || name == "markdown" && strings.HasPrefix(line, "|") && strings.Count(strings.ReplaceAll(line, `\|`, ""), "|") != 5 {
				t.Errorf("%s: %q", name, line)
			}
		}
	}
}

func TestPairsAndOrder(t *testing.T) {
	a, b, c := objects(t, tool(schema)), objects(t, strings.Replace(tool(schema), "name: pay", "name: b", 1)), objects(t, "kind: ToolPolicy\nmetadata: {name: a}\nspec: {blocklist: [x]}\n")
	r := compare(t, append(append([]v1.Object{}, c...), a...), append(append([]v1.Object{}, b...), a...))
	var got []string
	for _, ch := range r.Changes {
		got = append(got, string(ch.Action)+" "+ch.Name)
	}
	if strings.Join(got, ", ") != "create b, delete a" || r.Summary.Unchanged != 1 {
		t.Errorf("got %v, %+v", got, r.Summary)
	}
}

// What changed is located by objects that know the places of their fields; what is gone stays where it was.
func TestLocate(t *testing.T) {
	read := func(text string, places bool) []v1.Object {
		t.Helper()
		objects, bad := manifest.Decode("tools.yaml", []byte(text), manifest.Options{Fields: places})
		if len(bad) > 0 {
			t.Fatal(bad)
		}
		return objects
	}
	const tool = "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: %s}\nspec:\n  description: d\n  input_schema: {type: object%s}\n  mock_result: 1\n---\n"
	before := fmt.Sprintf(tool, "a", "") + fmt.Sprintf(tool, "gone", "")
	after := fmt.Sprintf(tool, "a", ", required: [x]")
	var reports [2]*diff.Report
	for i, places := range []bool{true, false} {
		was, is := read(before, places), read(after, places)
		var err error
		if reports[i], err = diff.NewChecker().Manifests(t.Context(), diff.Pairs(was, is), slices.Concat(was, is)); err != nil {
			t.Fatal(err)
		}
	}
	if at := reports[1].Changes[0].Reasons[0].Source; at.Line != 1 {
		t.Errorf("without places it is at %s", at)
	}
	reports[1].Locate(read(after, true))
	if got, want := reports[1].Changes[0].Reasons, reports[0].Changes[0].Reasons; !reflect.DeepEqual(got, want) || want[0].Source.Line != 6 {
		t.Errorf("got %v, want %v", got, want)
	}
}
