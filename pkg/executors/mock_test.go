package executors

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "toolctl.dev/toolctl/api/v1"
)

const pixel = "\x89PNG\r\n\x1a\n"

var mockFiles = map[string][]byte{
	"oslo.json":    []byte("\ufeff {\"t\": 12345678901234567890} \n"),
	"broken.json":  []byte(`{"t": `),
	"greet.tmpl":   []byte(`{"greeting": "hello {{.name}}"}`),
	"broken.tmpl":  []byte("{\n{{if}}"),
	"chart.png":    []byte(pixel),
	"no-extension": []byte(pixel),
	"notes.md":     []byte("# Notes"),
}

func mockTool(spec v1.ToolSpec) *v1.Tool {
	t := &v1.Tool{Spec: spec}
	t.Metadata.Name = "demo"
	t.Files = mockFiles
	return t
}

func TestMock(t *testing.T) {
	template := v1.ToolSpec{MockTemplate: `{"greeting": "hello {{.name}}"}`}
	tests := []struct {
		name string
		spec v1.ToolSpec
		args string
		want v1.Result
	}{
		{
			name: "static",
			spec: v1.ToolSpec{MockResult: json.RawMessage(`{"a": 1.50}`)},
			want: v1.Result{Content: json.RawMessage(`{"a": 1.50}`)},
		},
		{
			name: "static null",
			spec: v1.ToolSpec{MockResult: json.RawMessage(`null`)},
			want: v1.Result{Content: json.RawMessage(`null`)},
		},
		{
			name: "static file",
			spec: v1.ToolSpec{MockResultFile: "oslo.json"},
			want: v1.Result{Content: json.RawMessage(`{"t": 12345678901234567890}`)},
		},
		{
			name: "inline result before its file",
			spec: v1.ToolSpec{MockResult: json.RawMessage(`1`), MockResultFile: "absent.json"},
			want: v1.Result{Content: json.RawMessage(`1`)},
		},
		{
			name: "template",
			spec: template,
			args: `{"name": "\"}, \"admin\": true, \"x\": \""}`,
			want: v1.Result{Content: json.RawMessage(`{"greeting": "hello \"}, \"admin\": true, \"x\": \""}`)},
		},
		{
			name: "template before result",
			spec: v1.ToolSpec{MockTemplate: `{{.n}}`, MockResult: json.RawMessage(`1`)},
			args: `{"n": 12345678901234567890}`,
			want: v1.Result{Content: json.RawMessage(`12345678901234567890`)},
		},
		{
			name: "template file before result",
			spec: v1.ToolSpec{MockTemplateFile: "greet.tmpl", MockResult: json.RawMessage(`1`)},
			args: `{"name": "you"}`,
			want: v1.Result{Content: json.RawMessage(`{"greeting": "hello you"}`)},
		},
		{
			name: "inline template before its file",
			spec: v1.ToolSpec{MockTemplate: `2`, MockTemplateFile: "greet.tmpl"},
			want: v1.Result{Content: json.RawMessage(`2`)},
		},
		{
			name: "parts beside a result",
			spec: v1.ToolSpec{MockResult: json.RawMessage(`1`), MockParts: []v1.Part{{Type: v1.PartImage, Media: &v1.Media{FilePath: "chart.png", Caption: "a chart"}}}},
			want: v1.Result{Content: json.RawMessage(`1`), Parts: []v1.Part{{Type: v1.PartImage, Data: "iVBORw0KGgo=", MIMEType: "image/png", Description: "a chart"}}},
		},
		{
			name: "parts beside a template",
			spec: v1.ToolSpec{MockTemplate: `"{{.x}}"`, MockParts: []v1.Part{{Type: v1.PartText, Text: "t"}}},
			args: `{"x": "y"}`,
			want: v1.Result{Content: json.RawMessage(`"y"`), Parts: []v1.Part{{Type: v1.PartText, Text: "t"}}},
		},
		{
			name: "parts with one text",
			spec: v1.ToolSpec{MockParts: []v1.Part{
				{Type: v1.PartText, Text: `a "text"`},
				{Type: v1.PartImage, Media: &v1.Media{FilePath: "no-extension"}},
				{Type: v1.PartDocument, Media: &v1.Media{FilePath: "notes.md"}},
				{Type: v1.PartAudio, Media: &v1.Media{Data: "AAAA", MIMEType: "audio/wav"}},
				{Type: v1.PartImage, Data: "iVBORw0KGgo="},
				{Type: v1.PartVideo, Media: &v1.Media{URL: "https://example.com/film.mp4"}},
				{Type: v1.PartResource, Resource: &v1.ResourceContents{URI: "file:///a", Text: "t"}},
			}},
			want: v1.Result{Content: json.RawMessage(`"a \"text\""`), Parts: []v1.Part{
				{Type: v1.PartText, Text: `a "text"`},
				{Type: v1.PartImage, Data: "iVBORw0KGgo=", MIMEType: "image/png"},
				{Type: v1.PartDocument, Data: "IyBOb3Rlcw==", MIMEType: "text/markdown"},
				{Type: v1.PartAudio, Data: "AAAA", MIMEType: "audio/wav"},
				{Type: v1.PartImage, Data: "iVBORw0KGgo=", MIMEType: "image/png"},
				{Type: v1.PartVideo, URI: "https://example.com/film.mp4", MIMEType: "video/mp4"},
				{Type: v1.PartResource, Resource: &v1.ResourceContents{URI: "file:///a", Text: "t"}},
			}},
		},
		{
			name: "parts without text",
			spec: v1.ToolSpec{MockParts: []v1.Part{{Type: v1.PartResourceLink, URI: "file:///a", Name: "a"}}},
			want: v1.Result{Content: json.RawMessage(`null`), Parts: []v1.Part{{Type: v1.PartResourceLink, URI: "file:///a", Name: "a"}}},
		},
		{
			name: "parts with two texts",
			spec: v1.ToolSpec{MockParts: []v1.Part{{Type: v1.PartText, Text: "a"}, {Type: v1.PartText, Text: "b"}}},
			want: v1.Result{Content: json.RawMessage(`null`), Parts: []v1.Part{{Type: v1.PartText, Text: "a"}, {Type: v1.PartText, Text: "b"}}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, tool := newMock(), mockTool(tt.spec)
			tt.want.Status, tt.want.Attempts = v1.StatusComplete, 1
			if fs := m.Check(tool); len(fs) > 0 {
				t.Fatalf("Check found %v", fs)
			}
			for range 2 { // the second call uses the cached result of the first
				got, err := m.Execute(t.Context(), tool, json.RawMessage(tt.args))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Error(diff)
				}
				for i := range got.Parts {
					got.Parts[i].Text = "masked"
				}
			}
		})
	}
}

// TestMockOfPromptKit checks that a PromptKit mock has the same results as in PromptKit.
func TestMockOfPromptKit(t *testing.T) {
	tests := []struct {
		name, args, want string
		spec             v1.ToolSpec
	}{
		{name: "no result", want: `{"result": "mock response"}`},
		{name: "absent arguments", spec: v1.ToolSpec{MockTemplate: `{"a": "{{.x}}", "b": {{.x}}}`}, want: `{"a": "<no value>", "b": null}`},
		{name: "a file", spec: v1.ToolSpec{MockTemplateFile: "greet.tmpl"}, want: `{"greeting": "hello <no value>"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tool := mockTool(tt.spec)
			tool.APIVersion = "promptkit.altairalabs.ai/v1"
			res, err := newMock().Execute(t.Context(), tool, json.RawMessage(tt.args))
			if err != nil || string(res.Content) != tt.want {
				t.Errorf("got %s, %v, want %s", res.Content, err, tt.want)
			}
		})
	}
}

func TestMockStaticResultIsTheManifestsOwn(t *testing.T) {
	tool := mockTool(v1.ToolSpec{MockResult: json.RawMessage(`{"a": 1}`)})
	got, err := newMock().Execute(t.Context(), tool, nil)
	if err != nil || &got.Content[0] != &tool.Spec.MockResult[0] {
		t.Errorf("got %s, %v: a copy, which the registry would validate on every call", got.Content, err)
	}
}

func TestMockErrors(t *testing.T) {
	tests := []struct {
		name  string
		spec  v1.ToolSpec
		args  string
		phase string
		want  string
		check string // the error of Check; "" if only a call can find it
	}{
		{
			name:  "no result at all",
			phase: v1.PhaseExecute,
			want:  `tool "demo": spec: the tool has mode mock and declares no result: set mock_result, mock_template, mock_result_file, mock_template_file or mock_parts`,
			check: "/spec",
		},
		{
			name:  "template that does not parse",
			spec:  v1.ToolSpec{MockTemplate: "{\n{{if}}"},
			phase: v1.PhaseExecute,
			want:  `tool "demo": spec.mock_template: line 2: missing value for if`,
			check: "/spec/mock_template",
		},
		{
			name:  "template file that does not parse",
			spec:  v1.ToolSpec{MockTemplateFile: "broken.tmpl"},
			phase: v1.PhaseExecute,
			want:  `tool "demo": spec.mock_template_file: broken.tmpl: line 2: missing value for if`,
			check: "/spec/mock_template_file",
		},
		{
			name:  "template file that was not loaded",
			spec:  v1.ToolSpec{MockTemplateFile: "absent.tmpl"},
			phase: v1.PhaseExecute,
			want:  `tool "demo": spec.mock_template_file: the file "absent.tmpl" was not found when the manifest was loaded`,
			check: "/spec/mock_template_file",
		},
		{
			name:  "result file that was not loaded",
			spec:  v1.ToolSpec{MockResultFile: "absent.json"},
			phase: v1.PhaseExecute,
			want:  `tool "demo": spec.mock_result_file: the file "absent.json" was not found when the manifest was loaded`,
			check: "/spec/mock_result_file",
		},
		{
			name:  "result file that is not JSON",
			spec:  v1.ToolSpec{MockResultFile: "broken.json"},
			phase: v1.PhaseExecute,
			want:  `tool "demo": spec.mock_result_file: the file "broken.json" is not JSON: unexpected end of JSON input`,
			check: "/spec/mock_result_file",
		},
		{
			name:  "part file that was not loaded",
			spec:  v1.ToolSpec{MockParts: []v1.Part{{Type: v1.PartText, Text: "t"}, {Type: v1.PartImage, Media: &v1.Media{FilePath: "absent.png"}}}},
			phase: v1.PhaseExecute,
			want:  `tool "demo": spec.mock_parts[1].media.file_path: the file "absent.png" was not found when the manifest was loaded`,
			check: "/spec/mock_parts/1/media/file_path",
		},
		{
			name:  "part that is not base64",
			spec:  v1.ToolSpec{MockParts: []v1.Part{{Type: v1.PartImage, Media: &v1.Media{Data: "%%"}}}},
			phase: v1.PhaseExecute,
			want:  `tool "demo": spec.mock_parts[0].media.data: the data is not base64 (RFC 4648, section 4): illegal base64 data at input byte 0`,
			check: "/spec/mock_parts/0/media/data",
		},
		{
			name:  "absent argument",
			spec:  v1.ToolSpec{MockTemplate: "{\"a\":\n\"{{.city}}\"}"},
			phase: v1.PhaseExecute,
			want:  `tool "demo": mock_template: line 2: .city: argument "city" is missing: pass it, or use default or if in the template`,
		},
		{
			name:  "not JSON",
			spec:  v1.ToolSpec{MockTemplate: `hello {{.name}}`},
			args:  `{"name": "you"}`,
			phase: v1.PhaseExecute,
			want:  `tool "demo": mock_template: the rendered text is not JSON: invalid character 'h' looking for beginning of value at its line 1, column 1; the text is hello "you"`,
		},
		{
			name:  "long text that is not JSON",
			spec:  v1.ToolSpec{MockTemplate: strings.Repeat("é", 300)},
			phase: v1.PhaseExecute,
			want:  "; the text is " + strings.Repeat("é", 250) + "… (600 bytes)",
		},
		{
			name:  "not JSON with something to mask",
			spec:  v1.ToolSpec{MockTemplate: `hello {{.name}}`, Redact: []string{"name"}},
			args:  `{"name": "hunter2"}`,
			phase: v1.PhaseExecute,
			want:  `; the text is not shown, since spec.redact masks parts of it`,
		},
		{
			name:  "arguments that are no object",
			spec:  v1.ToolSpec{MockTemplate: `1`},
			args:  `[]`,
			phase: v1.PhaseValidate,
			want:  `tool "demo": the arguments are not a JSON object`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, tool := newMock(), mockTool(tt.spec)
			var paths []string
			for _, f := range m.Check(tool) {
				paths = append(paths, f.Path)
			}
			if got := strings.Join(paths, " "); got != tt.check {
				t.Errorf("Check found %q, want %q", got, tt.check)
			}
			res, err := m.Execute(t.Context(), tool, json.RawMessage(tt.args))
			var failed *v1.ExecutionError
			if !errors.As(err, &failed) || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got  %v\nwant %s", err, tt.want)
			}
			if failed.Phase != tt.phase || failed.Tool != "demo" {
				t.Errorf("got phase %q of tool %q, want %q", failed.Phase, failed.Tool, tt.phase)
			}
			if diff := cmp.Diff(v1.Result{}, res); diff != "" {
				t.Errorf("a result beside the error: %s", diff)
			}
		})
	}
}

func TestMockCheckFindsEveryViolation(t *testing.T) {
	tool := mockTool(v1.ToolSpec{MockTemplate: `{{`, MockParts: []v1.Part{
		{Type: v1.PartImage, Media: &v1.Media{FilePath: "a"}}, {Type: v1.PartImage, Data: "?"},
	}})
	tool.Fields = map[string]v1.Source{"/spec/mock_template": {File: "f.yaml", Line: 7}}
	fs := newMock().Check(tool)
	if len(fs) != 3 || fs[2].Source.Line != 7 {
		t.Errorf("got %v, want the errors of both parts and of the template with its place", fs)
	}
}

func TestMockTemplateEndsWithItsContext(t *testing.T) {
	tool := mockTool(v1.ToolSpec{MockTemplate: `[{{range 900000}}{{end}}]`})
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := newMock().Execute(ctx, tool, nil)
	var failed *v1.ExecutionError
	if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &failed) || failed.Phase != v1.PhaseTimeout {
		t.Errorf("deadline: got %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	if _, err := newMock().Execute(ctx, tool, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}

func TestMockCallsRunAtOnce(t *testing.T) {
	m, tool := newMock(), mockTool(v1.ToolSpec{MockTemplateFile: "greet.tmpl"})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				got, err := m.Execute(t.Context(), tool, json.RawMessage(`{"name": "you"}`))
				if err != nil || string(got.Content) != `{"greeting": "hello you"}` {
					t.Errorf("got %s, %v", got.Content, err)
				}
			}
		})
	}
	wg.Wait()
	if n := m.kept(); n != 1 {
		t.Errorf("%d answers are kept for one tool", n)
	}
}

func (m *mock) kept() (n int) {
	m.answers.made.Range(func(any, any) bool { n++; return true })
	return n
}

func TestMockForgetsToolsThatAreGone(t *testing.T) {
	m := newMock()
	kept := mockTool(v1.ToolSpec{MockTemplate: `1`})
	for _, tool := range []*v1.Tool{kept, mockTool(v1.ToolSpec{MockTemplate: `2`}), mockTool(v1.ToolSpec{MockTemplateFile: "greet.tmpl"})} {
		m.Check(tool)
	}
	if n := m.kept(); n != 3 {
		t.Fatalf("%d answers are kept of 3 tools", n)
	}
	for range 1000 {
		runtime.GC() // cleanups run some time after the collection that frees their tool
		if runtime.Gosched(); m.kept() == 1 {
			break
		}
	}
	if n := m.kept(); n != 1 {
		t.Errorf("%d answers are kept of 1 tool", n)
	}
	runtime.KeepAlive(kept)
}

var globalTool = v1.Tool{Spec: v1.ToolSpec{MockTemplate: `1`}}

// TestMockOfAPackageVariable checks a tool in a package variable, which the collector never frees.
func TestMockOfAPackageVariable(t *testing.T) {
	if got, err := newMock().Execute(t.Context(), &globalTool, nil); err != nil || string(got.Content) != "1" {
		t.Errorf("got %s, %v", got.Content, err)
	}
}

func TestAllHasEveryModeOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range All(Options{}) {
		if seen[e.Name()] {
			t.Errorf("two executors are called %q", e.Name())
		}
		seen[e.Name()] = true
	}
	tool := mockTool(v1.ToolSpec{})
	if !seen[tool.ExecutorName()] {
		t.Errorf("no executor is called %q", tool.ExecutorName())
	}
}
