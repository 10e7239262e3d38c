package schemas

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	v1 "toolctl.dev/toolctl/api/v1"
)

func TestForFindsTheSchemaOfEveryKind(t *testing.T) {
	for _, kind := range append(v1.Kinds(), "all") {
		data, ok := For(kind)
		var s struct {
			Schema string `json:"$schema"`
			ID     string `json:"$id"`
		}
		if err := json.Unmarshal(data, &s); !ok || err != nil {
			t.Fatalf("%s: %v, %v", kind, ok, err)
		}
		if want := "https://toolctl.dev/schemas/" + strings.ToLower(kind) + ".json"; s.ID != want || s.Schema == "" {
			t.Errorf("%s: $id %q and $schema %q, want $id %q", kind, s.ID, s.Schema, want)
		}
	}
	for _, kind := range []string{"", "pod", "../schemas/tool", "tool.json"} {
		if data, ok := For(kind); ok || data != nil {
			t.Errorf("For(%q) found a schema", kind)
		}
	}
}

func TestExplain(t *testing.T) {
	tests := []struct {
		name, path string
		want       Doc
	}{
		{"text with a default and an example", "tool.spec.http.method", Doc{
			Kind: "Tool", Path: "tool.spec.http.method", Name: "method", Type: "string",
			Description: "method is the HTTP method.", Default: "POST", Example: "GET",
			Enum: []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}}},
		{"default in words", "tool.spec.http.timeout_ms", Doc{
			Kind: "Tool", Path: "tool.spec.http.timeout_ms", Name: "timeout_ms", Type: "integer",
			Description: "timeout_ms is the time for one attempt in milliseconds; the tool's timeout_ms bounds all attempts.",
			Default:     "the tool's timeout_ms", Example: "2000"}},
		{"through a list", "toolpolicy.spec.limits.max_calls", Doc{
			Kind: "ToolPolicy", Path: "toolpolicy.spec.limits.max_calls", Name: "max_calls", Type: "integer", Required: true,
			Description: "max_calls is the most calls in the span; 0 allows none.", Example: "3"}},
		{"list with an index, plural kind, any case", " ToolPolicies.spec.limits[0].max_calls", Doc{
			Kind: "ToolPolicy", Path: "toolpolicy.spec.limits.max_calls", Name: "max_calls", Type: "integer", Required: true,
			Description: "max_calls is the most calls in the span; 0 allows none.", Example: "3"}},
		{"through a map", "mcpservers.spec.overrides.description", Doc{
			Kind: "MCPServer", Path: "mcpserver.spec.overrides.description", Name: "description", Type: "string",
			Description: "description replaces the tool's description."}},
		{"through a map with its star", "MCPServer.spec.overrides.*.description", Doc{
			Kind: "MCPServer", Path: "mcpserver.spec.overrides.description", Name: "description", Type: "string",
			Description: "description replaces the tool's description."}},
		{"embedded struct", "scenario.spec.mocks.times", Doc{
			Kind: "Scenario", Path: "scenario.spec.mocks.times", Name: "times", Type: "integer",
			Description: "times is how often the response answers; 0 means always.", Default: "0"}},
		{"any value", "tool.spec.mock_result", Doc{
			Kind: "Tool", Path: "tool.spec.mock_result", Name: "mock_result", Type: "any",
			Description: "mock_result is the result of a mock call: any JSON value.", Example: "{conditions: sunny}"}},
		{"map of text that must stay text", "tool.spec.http.request.static_query", Doc{
			Kind: "Tool", Path: "tool.spec.http.request.static_query", Name: "static_query", Type: "map[string]string",
			Description: "static_query is always in the query.", Example: `{version: "2"}`}},
		{"default that is a list", "tool.spec.http.retry.retry_on", Doc{
			Kind: "Tool", Path: "tool.spec.http.retry.retry_on", Name: "retry_on", Type: "[]integer",
			Description: "retry_on lists the status codes to retry on, if the method or hints make that safe.",
			Default:     "[429, 500, 502, 503, 504]", Example: "[429, 503]"}},
		{"object", "tool.spec.http.auth.basic", Doc{
			Kind: "Tool", Path: "tool.spec.http.auth.basic", Name: "basic", Type: "BasicAuth",
			Description: "basic is HTTP basic authentication (RFC 7617).", // its type says no more
			Fields: []Field{
				{Name: "username_env", Type: "string", Required: true, Description: "username_env is the variable with the user name."},
				{Name: "password_env", Type: "string", Required: true, Description: "password_env is the variable with the password."},
			}}},
		{"map", "prompt.metadata.labels", Doc{
			Kind: "Prompt", Path: "prompt.metadata.labels", Name: "labels", Type: "map[string]string",
			Description: "labels are short pairs that selectors match.", Example: "{team: payments}"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.Version = v1.APIVersion
			got, err := Explain(tt.path, false)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(Doc{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheTypeOfAFieldIsDescribedToo(t *testing.T) {
	d, err := Explain("mcpserver.spec.tool_filter", false)
	if err != nil {
		t.Fatal(err)
	}
	field, typ, _ := strings.Cut(d.Description, "\n\n")
	if field != "tool_filter chooses which of the server's tools exist." || !strings.HasPrefix(typ, "ToolFilter chooses tools") {
		t.Errorf("got %q", d.Description)
	}
}

func TestExplainUnknownPaths(t *testing.T) {
	tests := []struct{ name, path, kind, want string }{
		{"near kind", "tol", "Kind", `kind "tol" not found; did you mean "tool"?`},
		{"no kind", "pod", "Kind", `kind "pod" not found: the kinds are tool, prompt, mcpserver, toolpolicy, toolset, scenario`},
		{"nothing", "", "Kind", `kind "" not found: the kinds are tool, prompt, mcpserver, toolpolicy, toolset, scenario`},
		{"near field", "tool.spec.http.metod", "Field", `field "tool.spec.http.metod" not found; did you mean "tool.spec.http.method"?`},
		{"wrong case", "tool.spec.timeoutMs", "Field", `field "tool.spec.timeoutMs" not found; did you mean "tool.spec.timeout_ms"?`},
		{"spec is forgotten", "tools.http", "Field", `field "tools.http" not found; did you mean "tool.spec.http"?`},
		{"metadata is forgotten", "tool.name", "Field", `field "tool.name" not found; did you mean "tool.metadata.name"?`},
		{"no field", "toolpolicy.spec.match.zebra", "Field", `field "toolpolicy.spec.match.zebra" not found: the fields of toolpolicy.spec.match are tools, labels, principals`},
		{"below text", "tool.spec.description.x", "Field", `field "tool.spec.description.x" not found: tool.spec.description is <string> and has no fields`},
		{"empty step", "tool.", "Field", `field "tool." not found: the fields of tool are apiVersion, kind, metadata, spec, status`},
		{"star on an object", "tool.*", "Field", `field "tool.*" not found: the fields of tool are apiVersion, kind, metadata, spec, status`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Explain(tt.path, false)
			var notFound *v1.NotFoundError
			if !errors.As(err, &notFound) || notFound.Kind != tt.kind {
				t.Fatalf("got %v, want a NotFoundError of kind %s", err, tt.kind)
			}
			if err.Error() != tt.want {
				t.Errorf("got  %s\nwant %s", err, tt.want)
			}
		})
	}
}

// Every field that a recursive Doc shows can be explained, completed, and has
// what a reader needs.
func TestEveryFieldIsExplained(t *testing.T) {
	n := 0
	var walk func(path string, fields []Field)
	walk = func(path string, fields []Field) {
		for _, f := range fields {
			n++
			p := path + "." + f.Name
			d, err := Explain(p, true)
			if err != nil {
				t.Errorf("%v", err)
				continue
			}
			if d.Path != p || d.Type != f.Type || d.Required != f.Required || !strings.HasPrefix(d.Description, f.Description) || f.Description == "" {
				t.Errorf("%s: got %+v, listed as %+v", p, d, f)
			}
			if diff := cmp.Diff(f.Fields, d.Fields); diff != "" {
				t.Errorf("%s (-in the tree +explained):\n%s", p, diff)
			}
			if !slices.Contains(Complete(p), p) {
				t.Errorf("%s is not completed", p)
			}
			for line := range strings.Lines(d.Text()) {
				if strings.HasPrefix(line, "    ") && !strings.HasPrefix(line, "    "+d.Name+": ") && len([]rune(line)) > width+1 {
					t.Errorf("%s: line of %d columns: %s", p, len([]rune(line))-1, line)
				}
			}
			walk(p, f.Fields)
		}
	}
	for _, kind := range kindNames() {
		d, err := Explain(kind, true)
		if err != nil {
			t.Fatal(err)
		}
		if d.Example == "" || d.Name != "" {
			t.Errorf("%s: got %+v", kind, d)
		}
		walk(kind, d.Fields)
	}
	if n < 200 {
		t.Errorf("only %d fields were walked", n)
	}
}

func TestFieldsWithoutRecursionHaveNoChildren(t *testing.T) {
	d, err := Explain("tool", false)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range d.Fields {
		if f.Fields != nil {
			t.Errorf("%s has children", f.Name)
		}
	}
}

func TestATypeThatHoldsItselfEnds(t *testing.T) {
	var f schemaFile
	if err := json.Unmarshal([]byte(`{"properties":{"part":{"$ref":"#/definitions/Part"}},"definitions":{"Part":{"properties":{
		"parts":{"type":"array","items":{"$ref":"#/definitions/Part"}},"name":{"type":"string"}}}}}`), &f); err != nil {
		t.Fatal(err)
	}
	want := []Field{{Name: "part", Type: "Part", Fields: []Field{{Name: "parts", Type: "[]Part"}, {Name: "name", Type: "string"}}}}
	if diff := cmp.Diff(want, f.fields(&f.node, true, nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestComplete(t *testing.T) {
	tests := []struct {
		prefix string
		want   []string
	}{
		{"to", []string{"tool", "toolpolicy", "toolset"}},
		{"tool.spec.mock_t", []string{"tool.spec.mock_template", "tool.spec.mock_template_file"}},
		{"toolpolicies.spec.limits.", []string{"toolpolicies.spec.limits.name", "toolpolicies.spec.limits.tools", "toolpolicies.spec.limits.max_calls", "toolpolicies.spec.limits.per", "toolpolicies.spec.limits.by"}},
		{"pod.", nil},
		{"tool.spec.description.", nil},
	}
	for _, tt := range tests {
		t.Run(tt.prefix, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Complete(tt.prefix)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestToYAMLKeepsTheValue(t *testing.T) {
	value := rapid.MapOfN(rapid.StringMatching(`[a-z ]{1,6}`), rapid.StringMatching(`[ -~]{0,20}`), 0, 4)
	rapid.Check(t, func(t *rapid.T) {
		data, err := json.Marshal(map[string]any{"a": value.Draw(t, "value"), "n": rapid.Int64().Draw(t, "n")})
		if err != nil {
			t.Fatal(err)
		}
		flow := rapid.Bool().Draw(t, "flow")
		text, err := toYAML(data, flow)
		if err != nil {
			t.Fatal(err)
		}
		var want, got any // JSON is YAML, so one reader reads both
		if err := errors.Join(yaml.Unmarshal(data, &want), yaml.Unmarshal([]byte(text), &got)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s became %s:\n%s", data, text, diff)
		}
		if flow && strings.Contains(text, "\n") {
			t.Fatalf("more than one line: %s", text)
		}
	})
}

func FuzzExplain(f *testing.F) {
	for _, s := range []string{"", "tool", "tools.spec.http", "toolpolicy.spec.limits[0].per", "mcpserver.spec.overrides.*.hints", "tool...", "tool.spec.[0]", "\xff.", "tool.spec.*"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		d, err := Explain(path, true)
		if err == nil {
			if d.Kind == "" || d.Type == "" || d.Text() == "" {
				t.Errorf("%q: %+v", path, d)
			}
			return
		}
		var notFound *v1.NotFoundError
		if !errors.As(err, &notFound) {
			t.Errorf("%q: got %v, want a NotFoundError", path, err)
		}
		for _, c := range candidates(notFound) {
			if _, err := Explain(c, false); err != nil {
				t.Errorf("%q: the candidate %q is not found", path, c)
			}
		}
	})
}

func candidates(e *v1.NotFoundError) []string {
	if e == nil {
		return nil
	}
	return e.Candidates
}
