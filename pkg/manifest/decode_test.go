package manifest

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	v1 "toolctl.dev/toolctl/api/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tool is the head of a Tool that has no violation of its own; the rest of spec follows
// from line 7 on.
const tool = "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata:\n  name: t\nspec:\n  description: d\n"

const okSchema = "  input_schema: {type: object}\n"

func violationStrings(fs []v1.Violation) []string {
	var out []string
	for _, f := range fs {
		out = append(out, f.String())
	}
	return out
}

// Every kind of violation of a stream, with its exact text.
func TestViolations(t *testing.T) {
	deep := strings.Repeat("[", 1100) + strings.Repeat("]", 1100)
	laugh := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]"
	for i := 1; i < 9; i++ {
		laugh += fmt.Sprintf(", a%d: &a%d [%s*a%d]", i, i, strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), i-1)
	}
	for _, tt := range []struct {
		name string
		file string // default a.yaml
		in   string
		want []string
	}{
		// fields
		{name: "unknown field", in: tool + okSchema + "  descripton: x\n",
			want: []string{`a.yaml:8:3: spec.descripton: unknown field "descripton"; did you mean "description"?`}},
		{name: "unknown field without a near one", in: tool + okSchema + "  zzzzzz: x\n",
			want: []string{`a.yaml:8:3: spec.zzzzzz: unknown field "zzzzzz"`}},
		{name: "wrong case", in: "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: t}\nspec:\n  Description: d\n" + okSchema,
			want: []string{`a.yaml:5:3: spec.Description: unknown field "Description"; did you mean "description"?`}},
		{name: "wrong case of apiVersion", in: strings.Replace(tool, "apiVersion", "apiversion", 1) + okSchema,
			want: []string{`a.yaml:1:1: apiversion: unknown field "apiversion"; did you mean "apiVersion"?`}},
		{name: "wrong case of kind", in: strings.Replace(tool, "kind", "Kind", 1) + okSchema,
			want: []string{`a.yaml:2:1: Kind: unknown field "Kind"; did you mean "kind"?`}},
		{name: "field of a Kubernetes export", in: "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata:\n  name: t\n  creationTimestamp: null\nspec: {description: d, input_schema: {}}\n",
			want: []string{`a.yaml:5:3: metadata.creationTimestamp: unknown field "creationTimestamp"`}},
		{name: "duplicate field", in: tool + okSchema + "  description: e\n",
			want: []string{`a.yaml:8:3: spec.description: duplicate key "description": first on line 6, again on line 8`}},
		{name: "duplicate key in a schema", in: tool + "  input_schema:\n    type: object\n    properties:\n      a: {}\n      a: {}\n",
			want: []string{`a.yaml:11:7: spec.input_schema.properties.a: duplicate key "a": first on line 10, again on line 11`}},
		{name: "duplicate key in a result", in: tool + okSchema + "  mock_result: {a: 1, b: 2, a: 3}\n",
			want: []string{`a.yaml:8:29: spec.mock_result.a: duplicate key "a": first on line 8, again on line 8`}},
		{name: "field at another place", in: tool + okSchema + "http: {url: \"https://example.com\"}\n",
			want: []string{`a.yaml:8:1: http: unknown field "http"; did you mean spec.http?`}},
		{name: "field of an item", in: "apiVersion: toolctl.dev/v1\nkind: Scenario\nmetadata: {name: s}\nspec: {calls: [], turns: [{user: hi}]}\n",
			want: []string{`a.yaml:4:8: spec.calls: unknown field "calls"; did you mean spec.turns[].calls?`}},
		{name: "field of several places", in: "apiVersion: toolctl.dev/v1\nkind: ToolPolicy\nmetadata: {name: p}\nspec: {tools: [a]}\n",
			want: []string{`a.yaml:4:8: spec.tools: unknown field "tools"`}},
		{name: "second executor block", in: tool + okSchema + "  http: {url: \"https://example.com\"}\n  mcp: {server: s}\n",
			want: []string{`a.yaml:9:3: spec.mcp: a second executor block: a tool has spec.http or spec.mcp, not both`}},
		// types
		{name: "string for integer", in: tool + okSchema + "  timeout_ms: \"5000\"\n",
			want: []string{`a.yaml:8:15: spec.timeout_ms: expected integer, got string "5000": write 5000 without quotes`}},
		{name: "text for integer", in: tool + okSchema + "  timeout_ms: five\n",
			want: []string{`a.yaml:8:15: spec.timeout_ms: expected integer, got string "five"`}},
		{name: "fraction for integer", in: tool + okSchema + "  timeout_ms: 1.5\n",
			want: []string{`a.yaml:8:15: spec.timeout_ms: expected integer, got number 1.5`}},
		{name: "integer too large", in: tool + okSchema + "  timeout_ms: 99999999999999999999\n",
			want: []string{`a.yaml:8:15: spec.timeout_ms: 99999999999999999999 is out of range: expected an integer of 64 bits`}},
		{name: "number for string", in: "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: t, labels: {version: 1.10}}\nspec: {description: d, input_schema: {}}\n",
			want: []string{`a.yaml:3:39: metadata.labels.version: expected string, got number 1.10: quote it`}},
		{name: "yes for boolean", in: tool + okSchema + "  hints: {read_only: yes}\n",
			want: []string{`a.yaml:8:22: spec.hints.read_only: expected boolean, got string "yes": write true`}},
		{name: "off for boolean", in: tool + okSchema + "  hints: {read_only: off}\n",
			want: []string{`a.yaml:8:22: spec.hints.read_only: expected boolean, got string "off": write false`}},
		{name: "string for array", in: tool + okSchema + "  redact: password\n",
			want: []string{`a.yaml:8:11: spec.redact: expected array, got string "password": write it as a list`}},
		{name: "array for object", in: tool + okSchema + "  hints: [a]\n",
			want: []string{`a.yaml:8:10: spec.hints: expected object, got an array`}},
		{name: "object for string", in: tool + okSchema + "  mock_template: {a: b}\n",
			want: []string{`a.yaml:8:18: spec.mock_template: expected string, got an object`}},
		{name: "null in a list", in: tool + okSchema + "  redact: [a, ~]\n",
			want: []string{`a.yaml:8:15: spec.redact[1]: expected string, got null`}},
		{name: "spec of the wrong type hides what is missing in it", in: "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: t}\nspec: text\n",
			want: []string{`a.yaml:4:7: spec: expected object, got string "text"`}},
		{name: "schema of the wrong type", in: tool + "  input_schema: text\n",
			want: []string{`a.yaml:7:17: spec.input_schema: a JSON Schema must be an object, got string`}},
		// rules of a kind
		{name: "missing field stands at its parent", in: "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: t}\nspec:\n  input_schema: {}\n",
			want: []string{`a.yaml:4:1: spec.description: required field "description" is missing`}},
		{name: "null is absent", in: "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: t}\nspec: {description: ~, input_schema: {}}\n",
			want: []string{`a.yaml:4:21: spec.description: required field "description" is missing`}},
		{name: "unknown value", in: tool + okSchema + "  mode: life\n",
			want: []string{`a.yaml:8:9: spec.mode: unknown value "life": expected one of mock, live, mcp, exec; did you mean "live"?`}},
		{name: "root type", in: tool + "  input_schema:\n    type: string\n",
			want: []string{`a.yaml:8:11: spec.input_schema.type: the root type of an input schema must be "object" (MCP specification, server/tools)`}},
		{name: "name missing", in: "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {}\nspec: {description: d, input_schema: {}}\n",
			want: []string{`a.yaml:3:1: metadata.name: required field "name" is missing`}},
		{name: "spec.name is not the name", in: tool + okSchema + "  name: other\n",
			want: []string{`a.yaml:8:9: warning: spec.name: spec.name "other" is ignored: the name is metadata.name`}},
		// kinds
		{name: "unknown kind", in: "apiVersion: toolctl.dev/v1\nkind: Tol\n",
			want: []string{`a.yaml:2:1: kind: unknown kind "Tol"; did you mean "Tool"?`}},
		{name: "unknown kind without a near one", in: "apiVersion: toolctl.dev/v1\nkind: Deployment\n",
			want: []string{`a.yaml:2:1: kind: unknown kind "Deployment": expected one of Tool, Prompt, MCPServer, ToolPolicy, Toolset, Scenario`}},
		{name: "kind missing", in: "apiVersion: toolctl.dev/v1\nspec: {}\n",
			want: []string{`a.yaml:1:1: kind: required field "kind" is missing`}},
		{name: "apiVersion missing", in: "kind: Tool\nmetadata: {name: t}\nspec: {description: d, input_schema: {}}\n",
			want: []string{`a.yaml:1:1: apiVersion: required field "apiVersion" is missing`}},
		{name: "another version of ours", in: strings.Replace(tool, "/v1", "/v2", 1) + okSchema,
			want: []string{`a.yaml:1:13: apiVersion: unknown apiVersion "toolctl.dev/v2": expected "toolctl.dev/v1"`}},
		{name: "foreign apiVersion", in: "apiVersion: apps/v1\nkind: Deployment\n",
			want: []string{`a.yaml:1:1: not a toolctl manifest: apiVersion "apps/v1", kind "Deployment"; expected apiVersion toolctl.dev/v1 and one of the kinds Tool, Prompt, MCPServer, ToolPolicy, Toolset, Scenario`}},
		{name: "no manifest", in: "a: b\n",
			want: []string{`a.yaml:1:1: not a toolctl manifest: apiVersion and kind are missing; expected apiVersion toolctl.dev/v1 and one of the kinds Tool, Prompt, MCPServer, ToolPolicy, Toolset, Scenario`}},
		{name: "an OpenAPI document", in: "openapi: 3.1.0\ninfo: {}\n",
			want: []string{`a.yaml:1:1: not a toolctl manifest, but an OpenAPI document: generate manifests from it with 'toolctl import openapi a.yaml'`}},
		{name: "a list", in: "- a\n",
			want: []string{`a.yaml:1:1: not a toolctl manifest: expected an object with apiVersion and kind, got an array; expected apiVersion toolctl.dev/v1 and one of the kinds Tool, Prompt, MCPServer, ToolPolicy, Toolset, Scenario`}},
		{name: "items of a List", in: "apiVersion: v1\nkind: List\nitems: {}\n",
			want: []string{`a.yaml:3:8: items: expected array, got an object`}},
		{name: "item of a List", in: "apiVersion: v1\nkind: List\nitems:\n- kind: Pod\n  apiVersion: v1\n",
			want: []string{`a.yaml:4:3: not a toolctl manifest: apiVersion "v1", kind "Pod"; expected apiVersion toolctl.dev/v1 and one of the kinds Tool, Prompt, MCPServer, ToolPolicy, Toolset, Scenario`}},
		{name: "PromptKit kind that is not read", in: "apiVersion: promptkit.altairalabs.ai/v1alpha1\nkind: Arena\n",
			want: []string{`a.yaml:1:1: warning: PromptKit kind "Arena" is not read: skipped; its MCP servers are read with 'toolctl import mcp-config a.yaml'`}},
		{name: "twice", in: tool + okSchema + "---\n" + tool + okSchema,
			want: []string{`a.yaml:1:1: metadata.name: Tool default/t is declared twice: here and at a.yaml:9:1`, `a.yaml:9:1: metadata.name: Tool default/t is declared twice: here and at a.yaml:1:1`}},
		// YAML
		{name: "syntax", in: "a: b\n c: d\n", want: []string{`a.yaml:2:2: not YAML: mapping values are not allowed in this context: the line is indented too far, or a value with ': ' in it has no quotes`}},
		{name: "syntax in the middle of a block", in: "a:\n  b: 1\n c: 2\nd: 3\n", want: []string{`a.yaml:3:2: not YAML: did not find expected key: the line is indented differently from the lines around it, or text follows a closing quote`}},
		{name: "tab", in: "a:\n\tb: 1\n", want: []string{`a.yaml:2:2: not YAML: found character that cannot start any token: the line is indented with a tab, but YAML allows only spaces`}},
		{name: "quote not closed", in: "a: 1\nb: \"x\nc: 2\n", want: []string{`a.yaml:2:1: not YAML: found unexpected end of stream: a quote is not closed`}},
		{name: "template", in: "a: {{ .Values.a }}\n", want: []string{`a.yaml:1:1: not a toolctl manifest: apiVersion and kind are missing; expected apiVersion toolctl.dev/v1 and one of the kinds Tool, Prompt, MCPServer, ToolPolicy, Toolset, Scenario`}},
		{name: "unknown anchor", in: "a: 1\nb: *c\n", want: []string{`a.yaml:2:1: not YAML: unknown anchor 'c' referenced: a value that begins with * or & needs quotes, as in "*"`}},
		{name: "anchor in itself", in: tool + "  input_schema: &a {b: *a}\n",
			want: []string{`a.yaml:7:24: spec.input_schema.b: the anchor "a" contains itself`}},
		{name: "control character", in: "a: 1\nb: \x01\n", want: []string{`a.yaml:2:1: not YAML: control characters are not allowed`}},
		{name: "not UTF-8", in: "a: 1\nb: ü\xff\n", want: []string{`a.yaml:2:5: not UTF-8: byte 0xff: save the file as UTF-8`}},
		{name: "too deep", in: tool + "  input_schema: {a: " + deep + "}\n",
			want: []string{`a.yaml:7:1019: spec.input_schema.a` + strings.Repeat("[0]", 119) + `: nested deeper than 1000 levels`}},
		{name: "a billion laughs", in: tool + "  input_schema: {" + laugh + "}\n",
			want: []string{`a.yaml:7:27: spec.input_schema: the document expands to more than 2000000 values`}},
		{name: "complex key", in: tool + "  input_schema: {[a]: b}\n",
			want: []string{`a.yaml:7:18: spec.input_schema: a key must be text, got an array`}},
		{name: "unknown tag", in: tool + okSchema + "  mock_result: !secret x\n",
			want: []string{`a.yaml:8:16: spec.mock_result: the tag "!secret" is not supported: expected none, or !!str, !!int, !!float, !!bool, !!null, !!map or !!seq`}},
		{name: "binary", in: tool + okSchema + "  mock_result: !!binary aGk=\n",
			want: []string{`a.yaml:8:16: spec.mock_result: the tag "!!binary" is not supported: expected none, or !!str, !!int, !!float, !!bool, !!null, !!map or !!seq`}},
		{name: "tag that does not fit", in: tool + okSchema + "  mock_result: !!int five\n",
			want: []string{`a.yaml:8:16: spec.mock_result: "five" cannot be read as !!int`}},
		{name: "merge of text", in: tool + "  input_schema: {<<: x}\n",
			want: []string{`a.yaml:7:18: spec.input_schema: a merge key (<<) takes a mapping or a list of mappings, got string "x"`}},
		{name: "infinity", in: tool + okSchema + "  mock_result: {a: .inf}\n",
			want: []string{`a.yaml:8:20: spec.mock_result.a: JSON has no infinite numbers: quote it to make it text`}},
		{name: "not a number", in: tool + okSchema + "  mock_result: .NaN\n",
			want: []string{`a.yaml:8:16: spec.mock_result: JSON has no NaN: quote it to make it text`}},
		{name: "long number", in: tool + okSchema + "  mock_result: " + strings.Repeat("9", 1001) + "\n",
			want: []string{`a.yaml:8:16: spec.mock_result: a number of 1001 digits is too long: expected at most 1000`}},
		{name: "large exponent", in: tool + okSchema + "  mock_result: 1e1001\n",
			want: []string{`a.yaml:8:16: spec.mock_result: the exponent is too large: expected at most 1000`}},
		// what YAML 1.1 reads otherwise
		{name: "YAML 1.1 booleans", in: tool + okSchema + "  mock_result:\n    y: no\n    k: 'on'\n",
			want: []string{`a.yaml:9:5: warning: spec.mock_result.y: "y" is text here, but a YAML 1.1 reader such as kubectl sees a boolean: quote it`,
				`a.yaml:9:8: warning: spec.mock_result.y: "no" is text here, but a YAML 1.1 reader such as kubectl sees a boolean: quote it`}},
		{name: "YAML 1.1 octal", in: tool + okSchema + "  mock_result: 0777\n",
			want: []string{`a.yaml:8:16: warning: spec.mock_result: "0777" is 777 here, but a YAML 1.1 reader such as kubectl sees the octal number 511: quote it`}},
		{name: "YAML 1.1 underscore", in: tool + okSchema + "  mock_result: 1_000\n",
			want: []string{`a.yaml:8:16: warning: spec.mock_result: "1_000" is text here, but a YAML 1.1 reader such as kubectl sees a number: quote it`}},
		// JSON
		{name: "JSON syntax", file: "a.json", in: "{\"apiVersion\": \"toolctl.dev/v1\",\n  \"kind\" \"Tool\"}", want: []string{`a.json:2:10: not JSON: invalid character '"' after object key`}},
		{name: "JSON ends early", file: "a.json", in: "{\"a\": [1,\n", want: []string{`a.json:1:10: not JSON: the text ends too early`}},
		{name: "JSON comment", file: "a.json", in: "{} // x", want: []string{
			`a.json:1:1: not a toolctl manifest: apiVersion and kind are missing; expected apiVersion toolctl.dev/v1 and one of the kinds Tool, Prompt, MCPServer, ToolPolicy, Toolset, Scenario`,
			`a.json:1:4: not JSON: invalid character '/' looking for beginning of value`}},
		{name: "JSON too deep", file: "a.json", in: deep, want: []string{`a.json:1:1002: nested deeper than 1000 levels`}},
		{name: "JSON duplicate key", file: "a.json", in: "{\"apiVersion\": \"toolctl.dev/v1\", \"kind\": \"Tool\", \"metadata\": {\"name\": \"t\"},\n\t\"spec\": {\"description\": \"ü\", \"description\": \"e\", \"input_schema\": {}}}",
			want: []string{`a.json:2:31: spec.description: duplicate key "description": first on line 2, again on line 2`}},
		// markdown
		{name: "markdown without front matter", file: "a.md", in: "# x\n", want: []string{`a.md:1:1: warning: no front matter: the whole text is the template; fields of a Prompt's spec may come before it, between two lines "---"`}},
		{name: "front matter not closed", file: "a.md", in: "---\ntitle: x\n", want: []string{`a.md:1:1: the front matter is not closed: a line "---" must follow it`}},
		{name: "front matter without fields", file: "a.md", in: "---\n- a\n---\nx\n", want: []string{`a.md:2:1: the front matter must contain fields, got an array`}},
		{name: "front matter syntax", file: "a.md", in: "---\ninput: a: b\n---\nx\n", want: []string{`a.md:2:1: not YAML: mapping values are not allowed in this context: the line is indented too far, or a value with ': ' in it has no quotes`}},
		{name: "front matter and body with a template", file: "a.md", in: "---\ntemplate: x\n---\ny\n",
			want: []string{`a.md:4:1: spec.template: duplicate key "template": first on line 2, again on line 4`}},
		{name: "front matter of another agent", file: "a.md", in: "---\nname: Code Reviewer\ncolor: blue\ntools: Read, Bash(git:*)\nthinking: maybe\n---\nReview.\n",
			want: []string{`a.md:2:7: warning: spec.name: "Code Reviewer" is not a legal name: read as "code-reviewer"`,
				`a.md:3:1: warning: spec.color: unknown field "color": ignored`,
				`a.md:4:8: warning: spec.tools[1]: "Bash(git:*)" is not a tool pattern: expected an exact name or a prefix with one trailing '*'`,
				`a.md:5:11: spec.thinking: expected boolean, got string "maybe"`}},
		{name: "empty markdown prompt", file: "a.md", in: "---\n---\n", want: []string{`a.md:1:1: warning: spec.template: a prompt needs spec.template or spec.system_prompt`}},
		// PromptKit
		{name: "PromptKit tool without what its own registry asks for", in: "apiVersion: promptkit.altairalabs.ai/v1alpha1\nkind: Tool\nmetadata: {name: t}\nspec: {mode: mock}\n",
			want: []string{`a.yaml:4:1: spec.description: required field "description" is missing`, `a.yaml:4:1: spec.input_schema: required field "input_schema" is missing`}},
		{name: "PromptKit tool with what we do not know", in: "apiVersion: promptkit.altairalabs.ai/v1alpha1\nkind: Tool\nmetadata: {name: Get_Order, labels: {a: \"b c\"}, tags: [x]}\nspec: {description: d, input_schema: {type: object}, mode: mine, timeout_ms: 1s, client: {consent: {}}, owner: me}\n",
			want: []string{`a.yaml:3:41: warning: metadata.labels.a: "b c" is not a label value: expected at most 63 letters, digits, '-', '_' and '.', starting and ending with a letter or digit`,
				`a.yaml:3:49: warning: metadata.tags: unknown field "tags": ignored`,
				`a.yaml:4:60: warning: spec.mode: unknown value "mine": expected one of mock, live, mcp, exec`,
				`a.yaml:4:78: warning: spec.timeout_ms: expected integer, got string "1s"`,
				`a.yaml:4:105: warning: spec.owner: unknown field "owner": ignored`}},
		{name: "PromptKit kind that is misspelt", in: "apiVersion: promptkit.altairalabs.ai/v1alpha1\nkind: Toool\nmetadata: {name: x}\n", want: []string{`a.yaml:2:1: kind: unknown kind "Toool"; did you mean "Tool"?`}},
		{name: "PromptKit kind that is missing", in: "apiVersion: promptkit.altairalabs.ai/v1alpha1\nmetadata: {name: x}\n", want: []string{`a.yaml:1:1: kind: required field "kind" is missing`}},
		{name: "PromptConfig without a name and a template", in: "apiVersion: promptkit.altairalabs.ai/v1alpha1\nkind: PromptConfig\nspec: {description: x}\n", want: []string{`a.yaml:1:1: metadata.name: required field "name" is missing`, `a.yaml:3:1: spec.template: a prompt needs spec.template or spec.system_prompt`}},
		{name: "PromptConfig with a field by our name and by PromptKit's", in: "apiVersion: promptkit.altairalabs.ai/v1alpha1\nkind: PromptConfig\nmetadata: {name: x}\nspec:\n  system_template: theirs\n  system_prompt: ours\n",
			want: []string{`a.yaml:6:3: warning: spec.system_prompt: PromptKit reads "system_template", not "system_prompt": ignored`}},
		{name: "PromptKit tool that is an agent", in: "apiVersion: promptkit.altairalabs.ai/v1alpha1\nkind: Tool\nmetadata: {name: x}\nspec: {description: d, input_schema: {type: object}, mode: a2a}\n",
			want: []string{`a.yaml:4:60: warning: spec.mode: mode "a2a" calls another agent, which toolctl does not support: the tool loads, but its calls fail`}},
		{name: "PromptKit name that is none on the wire", in: "apiVersion: promptkit.altairalabs.ai/v1\nkind: PromptConfig\nmetadata: {name: AI Assistant}\nspec: {system_template: \"\"}\n",
			want: []string{`a.yaml:3:18: warning: metadata.name: "AI Assistant" is not a legal name: expected lower-case letters, digits, '-', '_' and '.', starting and ending with a letter or digit, at most 253 long`,
				`a.yaml:4:1: spec.template: a prompt needs spec.template or spec.system_prompt`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := tt.file
			if file == "" {
				file = "a.yaml"
			}
			_, violations := Decode(file, []byte(tt.in), Options{})
			if diff := cmp.Diff(tt.want, violationStrings(violations)); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			for _, f := range violations {
				if f.Expected == "" || f.Got == "" {
					t.Errorf("%s: Expected %q, Got %q: both must be set", f, f.Expected, f.Got)
				}
			}
		})
	}
}

// raw decodes a mock_result and returns it as JSON.
func raw(t *testing.T, file, value string) string {
	t.Helper()
	in := tool + okSchema + "  mock_result: " + value + "\n"
	if file == "a.json" {
		in = `{"apiVersion": "toolctl.dev/v1", "kind": "Tool", "metadata": {"name": "t"}, "spec": {"description": "d", "input_schema": {}, "mock_result": ` + value + "}}"
	}
	objects, violations := Decode(file, []byte(in), Options{})
	if len(objects) != 1 || objects[0].Head().Broken() {
		t.Fatalf("objects %d, errors %v", len(objects), violationStrings(violations))
	}
	return string(objects[0].(*v1.Tool).Spec.MockResult)
}

// Scalars follow the core schema of YAML 1.2.2, section 10.3.2.
func TestScalars(t *testing.T) {
	for in, want := range map[string]string{
		"~": "null", "null": "null", "NULL": "null", "": "", "'null'": `"null"`,
		"true": "true", "True": "true", "FALSE": "false", "tRUE": `"tRUE"`,
		"y": `"y"`, "no": `"no"`, "On": `"On"`,
		"0": "0", "-0": "0", "+5": "5", "-5": "-5", "0777": "777", "007": "7", "0o17": "15", "0x1F": "31", "0xfF": "255", "-0x1F": `"-0x1F"`, "0o8": `"0o8"`, "0b11": `"0b11"`,
		"12345678901234567890123": "12345678901234567890123", "9007199254740993": "9007199254740993", "0xFFFFFFFFFFFFFFFFFF": "4722366482869645213695",
		"1.10": "1.10", ".5": "0.5", "5.": "5.0", "+.5": "0.5", "-.5e3": "-0.5e3", "01.5": "1.5", "1e5": "1e5", "1E+05": "1E+05", "1.e5": "1.0e5", "-0.0": "-0.0", "1e": `"1e"`, "1e5x": `"1e5x"`,
		".": `"."`, "+": `"+"`, "+-5": `"+-5"`, "1_000": `"1_000"`, "12:30": `"12:30"`, "2024-01-02": `"2024-01-02"`, "1.2.3": `"1.2.3"`, "-.nan": `"-.nan"`,
		"!!str 5": `"5"`, "!!int '5'": "5", "!!float 5": "5", "!!bool 'true'": "true", "!!null ''": "", "! '5'": `"5"`,
		"'5'": `"5"`, `"\u00e9\n\t\x01"`: `"é\n\t\u0001"`,
		"{1: a, true: b, ~: c, 0x1F: d}":                                        `{"1":"a","true":"b","~":"c","0x1F":"d"}`,
		"{z: 1, a: 2, m: [1, {q: []}]}":                                         `{"z":1,"a":2,"m":[1,{"q":[]}]}`,
		"{a: &x {b: 1}, c: *x, d: {<<: *x, e: 2}, f: {b: 3, <<: [*x, {g: 4}]}}": `{"a":{"b":1},"c":{"b":1},"d":{"e":2,"b":1},"f":{"b":3,"g":4}}`,
		"{'<<': 1}":            `{"<<":1}`,
		"{a: &k word, *k : 1}": `{"a":"word","word":1}`,
	} {
		t.Run(in, func(t *testing.T) {
			if got := raw(t, "a.yaml", in); got != want {
				t.Errorf("got %s, expected %s", got, want)
			}
		})
	}
}

func TestJSONValues(t *testing.T) {
	for in, want := range map[string]string{
		`"\ud83d\ude00"`: `"😀"`, `"a\/b"`: `"a/b"`, "{\t\"a\":\t1}": `{"a":1}`, `"no"`: `"no"`, `{"<<": {"a": 1}}`: `{"<<":{"a":1}}`,
		"123456789012345678901234567890": "123456789012345678901234567890", "1E400": "1E400", "-0.0": "-0.0", "[true, false, null]": "[true,false,null]", `"\u2028"`: `"\u2028"`,
	} {
		t.Run(in, func(t *testing.T) {
			if got := raw(t, "a.json", in); got != want {
				t.Errorf("got %s, expected %s", got, want)
			}
		})
	}
}

// One stream may hold many objects in many forms.
func TestStreams(t *testing.T) {
	one := strings.ReplaceAll(tool+okSchema, "name: t", "name: %s")
	js := `{"apiVersion": "toolctl.dev/v1", "kind": "Tool", "metadata": {"name": %q}, "spec": {"description": "d", "input_schema": {}}}`
	utf16 := []byte{0xff, 0xfe}
	for _, c := range []byte(fmt.Sprintf(one, "a")) {
		utf16 = append(utf16, c, 0)
	}
	for _, tt := range []struct {
		name, file, in string
		want           []string
	}{
		{"documents", "a.yaml", "---\n" + fmt.Sprintf(one, "a") + "---\n---\n# nothing\n---\n~\n---\n" + fmt.Sprintf(one, "b") + "...\n", []string{"a.yaml:2:1 a", "a.yaml:15:1 b"}},
		{"BOM and CRLF", "a.yaml", "\ufeff" + strings.ReplaceAll(fmt.Sprintf(one, "a"), "\n", "\r\n"), []string{"a.yaml:1:1 a"}},
		{"UTF-16", "a.yaml", string(utf16), []string{"a.yaml:1:1 a"}},
		{"List", "a.yaml", "apiVersion: toolctl.dev/v1\nkind: List\nmetadata: {}\nitems:\n" + indent(fmt.Sprintf(one, "a")) + indent(fmt.Sprintf(one, "b")), []string{"a.yaml:5:3 a", "a.yaml:12:3 b"}},
		{"JSON values", "a.json", fmt.Sprintf(js, "a") + "\n" + fmt.Sprintf(js, "b") + fmt.Sprintf(js, "c"), []string{"a.json:1:2 a", "a.json:2:2 b", "a.json:2:127 c"}},
		{"JSON on stdin", "-", fmt.Sprintf(js, "a") + "\n" + fmt.Sprintf(js, "b"), []string{"-:1:2 a", "-:2:2 b"}},
		{"YAML that begins like JSON", "-", "{apiVersion: toolctl.dev/v1, kind: Tool, metadata: {name: a}, spec: {description: d, input_schema: {}}}", []string{"-:1:2 a"}},
		{"documents before a syntax error", "a.yaml", fmt.Sprintf(one, "a") + "---\na: b\n c\nd: [\n", []string{"a.yaml:1:1 a"}},
		{"empty", "a.yaml", "", nil},
		{"broken objects are kept", "a.yaml", fmt.Sprintf(one, "a") + "  x: y\n", []string{"a.yaml:1:1 a broken"}},
		{"policies without a name are kept, broken", "a.yaml", "apiVersion: toolctl.dev/v1\nkind: ToolPolicy\n---\napiVersion: toolctl.dev/v1\nkind: ToolPolicy\n", []string{"a.yaml:1:1  broken", "a.yaml:4:1  broken"}},
		{"a policy behind a syntax error is kept, broken", "a.yaml", fmt.Sprintf(one, "a") + "---\n[\n---\nkind: ToolPolicy\n", []string{"a.yaml:1:1 a", "a.yaml:9:1  broken"}},
		{"objects without a name are not", "a.yaml", "apiVersion: toolctl.dev/v1\nkind: Tool\n", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			objects, violations := Decode(tt.file, []byte(tt.in), Options{})
			var got []string
			for _, o := range objects {
				s := o.Head().Source.String() + " " + o.Head().Metadata.Name
				if o.Head().Broken() {
					s += " broken"
				}
				got = append(got, s)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("objects (-want +got):\n%s\nviolations %v", diff, violationStrings(violations))
			}
			for _, f := range violations {
				if strings.Contains(f.Message, "declared twice") {
					t.Errorf("error %s", f)
				}
			}
		})
	}
}

func indent(doc string) string {
	return "- " + strings.ReplaceAll(strings.TrimSuffix(doc, "\n"), "\n", "\n  ") + "\n"
}

func TestBounds(t *testing.T) {
	_, violations := Decode("a.yaml", []byte(strings.Repeat("---\na: b\n", 4)), Options{MaxDocuments: 3})
	if got := violationStrings(violations); len(got) != 4 || got[3] != "a.yaml:8:1: more than 3 documents in one file: the rest is ignored" {
		t.Errorf("documents: %q", got)
	}
	_, violations = Decode("a.yaml", []byte("a: b"), Options{MaxFileBytes: 3})
	if got := violationStrings(violations); len(got) != 1 || got[0] != "a.yaml: the file is larger than 3 bytes" {
		t.Errorf("bytes: %q", got)
	}
	var many strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&many, "  f%d: 1\n", i)
	}
	_, violations = Decode("a.yaml", []byte(tool+okSchema+many.String()), Options{})
	if len(violations) != maxViolations+1 {
		t.Errorf("%d errors were listed", len(violations))
	}
}

// Places of fields are kept for the kinds whose messages name the line of a rule.
func TestFieldPlaces(t *testing.T) {
	in := "apiVersion: toolctl.dev/v1\nkind: ToolPolicy\nmetadata:\n  name: p\nspec:\n  allowlist: []\n  limits:\n  - tools: [\"a/*\"]\n    max_calls: 1\n    per: turn\n"
	objects, violations := Decode("a.yaml", []byte(in), Options{})
	if len(objects) != 1 || len(violations) > 0 {
		t.Fatalf("errors %v", violationStrings(violations))
	}
	p := objects[0].(*v1.ToolPolicy)
	for pointer, want := range map[string]string{
		"/spec/limits/0/max_calls": "a.yaml:9:5", "/spec/limits/0": "a.yaml:8:5", "/spec/limits/0/tools/0": "a.yaml:8:13", "/spec/limits/0/none": "a.yaml:8:5", "/none": "a.yaml:1:1",
	} {
		if got := p.Field(pointer).String(); got != want {
			t.Errorf("%s stands at %s, expected %s", pointer, got, want)
		}
	}
	if p.Spec.Allowlist == nil {
		t.Error("an empty allowlist became an absent one")
	}
	if tools, _ := Decode("a.yaml", []byte(tool+okSchema), Options{}); tools[0].Head().Fields != nil {
		t.Error("a Tool keeps the places of its fields")
	}
}

func TestPromptKit(t *testing.T) {
	in := `apiVersion: promptkit.altairalabs.ai/v1alpha1
kind: PromptConfig
metadata:
  namespace: support
spec:
  task_type: help-desk
  version: v1
  description: Answers customers
  system_template: "You are {{role}}."
  template_engine: {version: v1, syntax: "{{variable}}"}
  variables:
  - {name: role, type: string, required: true, description: Who speaks, example: a clerk}
  - {name: tone, default: [calm]}
  required_vars: [city, role]
  optional_vars: {units: metric}
  allowed_tools: [get_order]
  tool_policy: {tool_choice: auto, max_tool_calls_per_turn: 0, max_total_tool_calls: 3, blocklist: [pay]}
  parameters: {temperature: 0.2}
  validators: [{type: max_length, params: {max_characters: 10}}]
`
	objects, violations := Decode("p.yaml", []byte(in), Options{})
	if len(objects) != 1 || objects[0].Head().Broken() {
		t.Fatalf("errors %v", violationStrings(violations))
	}
	p := objects[0].(*v1.Prompt)
	three := int64(3)
	want := v1.PromptSpec{
		Description: "Answers customers", SystemPrompt: "You are {{role}}.", TemplateSyntax: "mustache", Tools: []string{"get_order"},
		Parameters: []byte(`{"temperature":0.2}`),
		Policy:     &v1.ToolPolicySpec{ToolChoice: "auto", MaxTotalToolCalls: &three, Blocklist: []string{"pay"}},
		Arguments: []v1.PromptArgument{
			{Name: "role", Description: "Who speaks", Required: true}, {Name: "tone", Default: []byte(`["calm"]`)},
			{Name: "city", Required: true}, {Name: "units", Default: []byte(`"metric"`)}},
		TaskType:   "help-desk",
		Validators: []v1.PromptValidator{{Type: "max_length", Params: []byte(`{"max_characters":10}`)}},
	}
	if diff := cmp.Diff(want, p.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if p.Key().String() != "Prompt support/help-desk" || p.APIVersion != "promptkit.altairalabs.ai/v1alpha1" {
		t.Errorf("key %s, apiVersion %s", p.Key(), p.APIVersion)
	}
	for _, f := range violations {
		t.Error(f)
	}
	checkRoundTrip(t, p)
}

// A PromptKit scenario plays more than tools; all of that is warnings.
func TestPromptKitScenario(t *testing.T) {
	in := `apiVersion: promptkit.altairalabs.ai/v1alpha1
kind: Scenario
metadata: {name: Order Flow}
spec:
  id: order-flow
  streaming: true
  tools: none
  turns:
  - role: user
    prompt: {text: hello}
    parts: [{type: image, media: {file_path: ../../x.png}}]
    assertions: [{type: state_is, params: {state: intake}}]
  - turns: 2
    seed: x
`
	objects, violations := Decode("s.yaml", []byte(in), Options{})
	if len(objects) != 1 || objects[0].Head().Broken() || len(objects[0].(*v1.Scenario).Spec.Turns) != 2 {
		t.Fatalf("errors %v", violationStrings(violations))
	}
	steps := strings.Replace(in, "turns:", "steps:", 1)
	if objects, violations = Decode("s.yaml", []byte(steps), Options{}); len(objects) != 1 || objects[0].Head().Broken() {
		t.Fatalf("without turns: errors %v", violationStrings(violations))
	}
}

func TestMarkdown(t *testing.T) {
	for _, tt := range []struct {
		name, file, in string
		key, title     string
		tools          []string
		template       string
	}{
		{"all of it", "x.md", "---\nname: travel\ntitle: Travel\ntools: [\"get-*\"]\ninput: {type: object}\n---\n\n# Travel advice for all\n\nHi {{.name}}\n", "travel", "Travel", []string{"get-*"}, "# Travel advice for all\n\nHi {{.name}}"},
		{"title from the heading", "x.md", "---\nname: a\n---\n```sh\n# not a heading at all\n```\n## What to pack ##\n", "a", "What to pack", nil, "```sh\n# not a heading at all\n```\n## What to pack ##"},
		{"heading too short", "x.md", "---\nname: a\n---\n# Role\n## A long enough one\n", "a", "", nil, "# Role\n## A long enough one"},
		{"name from the file", "dir/Code Review_v2!.md", "---\ndescription: d\n---\nx\n", "code-review_v2", "", nil, "x"},
		{"tools as one text, CRLF, BOM", "x.md", "\ufeff--- \r\nname: 007\r\ntools: Read, get-a ,\r\n---\r\na\r\nb\r\n", "007", "", []string{"Read", "get-a"}, "a\nb"},
		{"no fields", "x.md", "---\n---\nx", "x", "", nil, "x"},
		{"system prompt only", "x.md", "---\nsystem_prompt: s\n---\n", "x", "", nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			objects, violations := Decode(tt.file, []byte(tt.in), Options{})
			if len(objects) != 1 || len(violations) > 0 {
				t.Fatalf("objects %d, errors %v", len(objects), violationStrings(violations))
			}
			p := objects[0].(*v1.Prompt)
			got := []any{p.Metadata.Name, p.Spec.Title, p.Spec.Tools, p.Spec.Template, p.APIVersion}
			want := []any{tt.key, tt.title, tt.tools, tt.template, v1.APIVersion}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			checkRoundTrip(t, p)
		})
	}
}

// Every type of api/v1 has a form that the decoder reads.
func TestDecoderKnowsEveryType(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		if seen[typ] || typ == rawMessage {
			return
		}
		seen[typ] = true
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice:
			walk(typ.Elem())
		case reflect.Map:
			if typ.Key().Kind() != reflect.String {
				t.Errorf("%s has keys that are not strings", typ)
			}
			walk(typ.Elem())
		case reflect.Struct:
			for _, f := range tableOf(typ).byName {
				walk(f.typ)
			}
		case reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64:
		default:
			t.Errorf("%s is of a kind that decodeScalar does not read", typ)
		}
	}
	for _, kind := range v1.Kinds() {
		walk(reflect.TypeOf(v1.NewObject(kind)).Elem())
	}
}
