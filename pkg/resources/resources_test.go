package resources_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/resources"
)

func tool(name string, files map[string][]byte, all ...v1.FileResource) *v1.Tool {
	t := v1.NewObject(v1.KindTool).(*v1.Tool)
	t.Metadata.Name, t.Spec.Resources, t.Files = name, all, files
	return t
}

func TestOf(t *testing.T) {
	p := v1.NewObject(v1.KindPrompt).(*v1.Prompt)
	p.Metadata.Name, p.Metadata.Namespace, p.Files = "advice", "eu", map[string][]byte{"a b/ü.csv": []byte("x"), "same": nil}
	p.Spec.Resources = []v1.FileResource{{File: "a b/ü.csv"}, {File: "same", URI: "docs://same", Title: "of the prompt"}}
	broken := tool("broken", map[string][]byte{"x": nil}, v1.FileResource{File: "x"})
	broken.Violations = []v1.Violation{{Message: "broken"}}
	var got []string
	for _, r := range resources.Of([]v1.Object{
		p, broken,
		tool("weather", map[string][]byte{"docs/units.md": []byte("# Units"), "../up.txt": nil, "same": nil},
			v1.FileResource{File: "docs/units.md", Title: "Units"}, v1.FileResource{File: "../up.txt", Name: "up"},
			v1.FileResource{File: "same", URI: "docs://same", Title: "of the tool"}, v1.FileResource{File: "not-read"}),
	}) {
		got = append(got, fmt.Sprintf("%s %s %s %s %s", r.URI, r.Name, r.MIMEType, r.Title, r.Owner))
	}
	want := []string{
		"docs://same same text/plain of the prompt Prompt eu/advice",
		"file:///default/weather/docs/units.md units.md text/markdown Units Tool default/weather",
		"file:///default/weather/up.txt up text/plain  Tool default/weather",
		"file:///eu/advice/a%20b/%C3%BC.csv ü.csv text/csv  Prompt eu/advice",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestContents(t *testing.T) {
	for _, tc := range []struct {
		name, file, mime string
		data             string
		want             v1.ResourceContents
	}{
		{"text by its name", "a.md", "", "# A", v1.ResourceContents{MIMEType: "text/markdown", Text: "# A"}},
		{"JSON is text", "a.json", "", "{}", v1.ResourceContents{MIMEType: "application/json", Text: "{}"}},
		{"a structured suffix is text", "a", "application/problem+json; charset=utf-8", "{}", v1.ResourceContents{MIMEType: "application/problem+json; charset=utf-8", Text: "{}"}},
		{"text by its bytes", "LICENSE", "", "free", v1.ResourceContents{MIMEType: "text/plain", Text: "free"}},
		{"an image", "a.PNG", "", "\x89PNG", v1.ResourceContents{MIMEType: "image/png", Blob: "iVBORw=="}},
		{"text that is not UTF-8", "a.txt", "", "\xff\xfe", v1.ResourceContents{MIMEType: "text/plain", Blob: "//4="}},
		{"the manifest's type wins", "a.md", "application/octet-stream", "# A", v1.ResourceContents{MIMEType: "application/octet-stream", Blob: "IyBB"}},
		{"empty", "a.txt", "", "", v1.ResourceContents{MIMEType: "text/plain"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			all := resources.Of([]v1.Object{tool("t", map[string][]byte{tc.file: []byte(tc.data)}, v1.FileResource{File: tc.file, URI: "x:y", MIMEType: tc.mime})})
			if len(all) != 1 {
				t.Fatalf("got %d", len(all))
			}
			tc.want.URI = "x:y"
			if d := cmp.Diff(v1.Part{Type: v1.PartResource, Resource: &tc.want}, all[0].Contents()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestDeclarationsThatCannotStand(t *testing.T) {
	many := make([]v1.FileResource, 101)
	for i := range many {
		many[i].File = fmt.Sprint(i)
	}
	for _, tc := range []struct {
		name string
		all  []v1.FileResource
		want string // the path of the violation
	}{
		{"nothing", []v1.FileResource{{}}, "/spec/resources/0/file"},
		{"a relative URI", []v1.FileResource{{File: "a", URI: "docs/a"}}, "/spec/resources/0/uri"},
		{"a URI with a space", []v1.FileResource{{File: "a", URI: "docs:a b"}}, "/spec/resources/0/uri"},
		{"no media type", []v1.FileResource{{File: "a", MIMEType: "markdown"}}, "/spec/resources/0/mime_type"},
		{"annotations", []v1.FileResource{{File: "a", Annotations: []byte(`[]`)}}, "/spec/resources/0/annotations"},
		{"twice", []v1.FileResource{{File: "a"}, {File: "./a"}}, "/spec/resources/1"},
		{"too many", many, "/spec/resources"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := tool("t", nil, tc.all...)
			o.Spec.Description, o.Spec.InputSchema = "d", []byte(`{"type":"object"}`)
			fs := o.Validate()
			if len(fs) != 1 || fs[0].Path != tc.want {
				t.Errorf("got %v, want one error at %s", fs, tc.want)
			}
		})
	}
}
