package schemagen

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	v1 "toolctl.dev/toolctl/api/v1"
)

// compiler returns a compiler that holds the generated schemas under their $id
// and loads nothing else.
func compiler(t *testing.T) *jsonschema.Compiler {
	t.Helper()
	src := readRepo(t)
	files, err := schemaFiles(src)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{})
	for _, f := range files {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(f.data))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource(baseURL+filepath.Base(f.path), doc); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func compile(t *testing.T, c *jsonschema.Compiler, name string) *jsonschema.Schema {
	t.Helper()
	s, err := c.Compile(baseURL + name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func instance(t *testing.T, raw []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// The manifests in the comments of api/v1 fit the schemas, the Go types and
// their Validate.
func TestManifestsInCommentsAreValid(t *testing.T) {
	src, c := readRepo(t), compiler(t)
	_, blocks := typeComment(src.doc)
	for _, kind := range v1.Kinds() {
		_, own := typeComment(src.types[kind].doc)
		if len(own) != 1 {
			t.Errorf("the comment of %s holds %d manifests, want 1", kind, len(own))
		}
		blocks = append(blocks, own...)
	}
	for _, block := range blocks {
		raw, err := toJSON(block)
		if err != nil {
			t.Fatal(err)
		}
		var head v1.Header
		if err := json.Unmarshal(raw, &head); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{strings.ToLower(head.Kind) + ".json", "all.json"} {
			if err := compile(t, c, name).Validate(instance(t, raw)); err != nil {
				t.Errorf("%s: %v in\n%s", name, err, block)
			}
		}
		o := v1.NewObject(head.Kind)
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.DisallowUnknownFields()
		if err := dec.Decode(o); err != nil {
			t.Errorf("%v in\n%s", err, block)
		}
		for _, f := range o.Validate() {
			t.Errorf("%v in\n%s", f, block)
		}
	}
}

// What the repository ships as examples fits all.json, so that an editor with
// the schema shows no error in them.
func TestShippedManifestsFitAll(t *testing.T) {
	all, docs := compile(t, compiler(t), "all.json"), 0
	walk := func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ext := filepath.Ext(path); d.IsDir() || ext != ".yaml" && ext != ".yml" {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for dec := yaml.NewDecoder(bytes.NewReader(data)); ; docs++ {
			var n yaml.Node
			if err := dec.Decode(&n); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			text, err := yaml.Marshal(&n)
			if err != nil {
				return err
			}
			raw, err := toJSON(string(text))
			if err != nil {
				return err
			}
			var head v1.Header
			if json.Unmarshal(raw, &head) != nil || head.APIVersion != v1.APIVersion {
				continue // PromptKit's, or data beside the manifests
			}
			if err := all.Validate(instance(t, raw)); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
	for _, dir := range []string{"manifests", "cmd/toolctl/starter"} {
		if err := filepath.WalkDir(filepath.Join(root, dir), walk); err != nil {
			t.Error(err)
		}
	}
	if docs == 0 {
		t.Error("no manifest was found")
	}
}

// Each example and each default in a schema fits the schema it stands in.
func TestExamplesAndDefaultsFitTheirOwnSchema(t *testing.T) {
	c, checked := compiler(t), 0
	files, err := schemaFiles(readRepo(t))
	if err != nil {
		t.Fatal(err)
	}
	var walk func(file, pointer string, v any)
	walk = func(file, pointer string, v any) {
		m, ok := v.(map[string]any)
		if !ok {
			return
		}
		values, _ := m["examples"].([]any)
		if d, ok := m["default"]; ok {
			values = append(values, d)
		}
		if len(values) > 0 {
			s := compile(t, c, file+"#"+pointer)
			for _, ex := range values {
				checked++
				if err := s.Validate(ex); err != nil {
					t.Errorf("%s#%s: %v", file, pointer, err)
				}
			}
		}
		for _, key := range []string{"properties", "definitions"} {
			subs, _ := m[key].(map[string]any)
			for name, sub := range subs {
				walk(file, v1.Pointer(pointer, key, name), sub)
			}
		}
	}
	for _, f := range files {
		walk(filepath.Base(f.path), "", instance(t, f.data))
	}
	if checked < 100 {
		t.Errorf("only %d values were checked", checked)
	}
}

func TestSchemasRefuse(t *testing.T) {
	const head = "apiVersion: toolctl.dev/v1\nmetadata: {name: x}\n"
	tests := []struct{ name, file, manifest, want string }{
		{"unknown field", "tool.json", head + "kind: Tool\nspec: {description: d, input_schema: {}, modus: mock}", "additional properties 'modus' not allowed"},
		{"unknown field at the top", "tool.json", head + "kind: Tool\nstate: {}\nspec: {description: d, input_schema: {}}", "additional properties 'state' not allowed"},
		{"a status that is no object", "tool.json", head + "kind: Tool\nstatus: 1\nspec: {description: d, input_schema: {}}", "got number, want object"},
		{"wrong case", "tool.json", head + "kind: Tool\nspec: {Description: d, input_schema: {}}", "missing property 'description'"},
		{"missing field", "tool.json", head + "kind: Tool\nspec: {description: d}", "missing property 'input_schema'"},
		{"empty text", "tool.json", head + "kind: Tool\nspec: {description: '', input_schema: {}}", "minLength: got 0, want 1"},
		{"another kind", "tool.json", head + "kind: Prompt\nspec: {description: d, input_schema: {}}", "value must be 'Tool'"},
		{"another version", "tool.json", "apiVersion: v1\nmetadata: {name: x}\nkind: Tool\nspec: {description: d, input_schema: {}}", "value must be 'toolctl.dev/v1'"},
		{"no member of the list", "tool.json", head + "kind: Tool\nspec: {description: d, input_schema: {}, mode: fast}", "value must be one of 'mock', 'live', 'mcp'"},
		{"schema is a text", "tool.json", head + "kind: Tool\nspec: {description: d, input_schema: object}", "got string, want boolean or object"},
		{"below the bound", "toolpolicy.json", head + "kind: ToolPolicy\nspec: {max_total_tool_calls: -1}", "minimum: got -1, want 0"},
		{"above the bound", "scenario.json", head + "kind: Scenario\nspec: {turns: [{}], mocks: {a: {fault: {kind: status, status: 600}}}}", "maximum: got 600, want 599"},
		{"empty list", "scenario.json", head + "kind: Scenario\nspec: {turns: []}", "minItems: got 0, want 1"},
		{"number for text in a map", "mcpserver.json", head + "kind: MCPServer\nspec: {command: x, env: {A: 1}}", "got number, want string"},
		{"list of nothing known", "all.json", "apiVersion: v1\nkind: List\nitems: [{kind: Pod}]", "value must be 'Tool'"},
		{"no manifest", "all.json", "[]", "got array, want object"},
	}
	c := compiler(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			raw, err := toJSON(tt.manifest)
			if err != nil {
				t.Fatal(err)
			}
			err = compile(t, c, tt.file).Validate(instance(t, raw))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func TestAllTakesAList(t *testing.T) {
	const list = `{"apiVersion":"v1","kind":"List","items":[
		{"apiVersion":"toolctl.dev/v1","kind":"MCPServer","metadata":{"name":"a"},"spec":{"command":"x"}},
		{"apiVersion":"toolctl.dev/v1","kind":"ToolPolicy","metadata":{"name":"b"},"spec":{}}]}`
	if err := compile(t, compiler(t), "all.json").Validate(instance(t, []byte(list))); err != nil {
		t.Error(err)
	}
}

func TestDefaultIsAValueOrProse(t *testing.T) {
	tests := []struct {
		name, typ, tag, deflt string
		value                 string // "" for prose
	}{
		{"number", "int", "", "30000", "30000"},
		{"words for a number", "int", "", "the tool's timeout_ms", ""},
		{"word for a number", "int", "", "unlimited", ""},
		{"boolean", "*bool", "", "true", "true"},
		{"boolean with a condition", "*bool", "", "true, unless read_only", ""},
		{"one word", "string", "", "default", `"default"`},
		{"several words", "string", "", "the manifest's name", ""},
		{"member", "string", "oneof=a|b", "a", `"a"`},
		{"words for a member", "string", "oneof=a|b", "a if there is b", ""},
		{"list", "[]int", "", "[1, 2]", "[1,2]"},
		{"words for a list", "[]string", "", "all", ""},
		{"any value", "json.RawMessage", "", "{}", "{}"},
		{"word for any value", "json.RawMessage", "", "all", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			src, err := sourceOf(t, "// Size is big. Default: "+tt.deflt+".\nSize "+tt.typ+" `json:\"size\" check:\""+tt.tag+"\"`")
			if err != nil {
				t.Fatal(err)
			}
			files, err := schemaFiles(src)
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				Properties struct {
					Size struct {
						Description string
						Default     json.RawMessage
					}
				}
			}
			if err := json.Unmarshal(files[0].data, &got); err != nil {
				t.Fatal(err)
			}
			var compact bytes.Buffer
			if raw := got.Properties.Size.Default; raw != nil {
				if err := json.Compact(&compact, raw); err != nil {
					t.Fatal(err)
				}
			}
			want := "size is big."
			if tt.value == "" {
				want += "\n\nDefault: " + tt.deflt + "."
			}
			if compact.String() != tt.value || got.Properties.Size.Description != want {
				t.Errorf("got default %s and text %q, want %q and %q", compact.String(), got.Properties.Size.Description, tt.value, want)
			}
		})
	}
}

func TestToJSONKeepsOrderAndDigits(t *testing.T) {
	got, err := toJSON("{z: 12345678901234567890, a: ['<&>', 1.50, ~, yes]}")
	if want := `{"z":12345678901234567890,"a":["<&>",1.50,null,"yes"]}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	if _, err := toJSON(".inf"); err == nil || !strings.Contains(err.Error(), "JSON has no infinite numbers") {
		t.Errorf(".inf: got %v", err)
	}
}
