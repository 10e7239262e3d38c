package executors

import (
	"encoding/json"
	"io"
	"testing"
	"text/template"

	v1 "toolctl.dev/toolctl/api/v1"
)

func benchMock(b *testing.B, spec v1.ToolSpec, args string) {
	m, tool := newMock(), mockTool(spec)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Execute(b.Context(), tool, json.RawMessage(args)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMockStatic(b *testing.B) {
	benchMock(b, v1.ToolSpec{MockResult: json.RawMessage(`{"conditions": "sunny"}`)}, `{}`)
}

func BenchmarkMockStaticFile(b *testing.B) {
	benchMock(b, v1.ToolSpec{MockResultFile: "oslo.json"}, `{}`)
}

const (
	benchTemplate = `{"location": "{{.location}}", "temperature": {{.temp}}, "units": "{{if .units}}{{.units}}{{else}}metric{{end}}"}`
	benchArgs     = `{"location": "Oslo, Norway", "temp": 21.5}`
)

// BenchmarkMockTemplate is for comparison with BenchmarkMockTemplateFloor, which decodes the same arguments and uses
// bare text/template, without escapes and checks.
func BenchmarkMockTemplate(b *testing.B) {
	benchMock(b, v1.ToolSpec{MockTemplate: benchTemplate}, benchArgs)
}

func BenchmarkMockTemplateFloor(b *testing.B) {
	t := template.Must(template.New("").Parse(benchTemplate))
	b.ReportAllocs()
	for b.Loop() {
		var args map[string]any
		if err := json.Unmarshal([]byte(benchArgs), &args); err != nil {
			b.Fatal(err)
		}
		if err := t.Execute(io.Discard, args); err != nil {
			b.Fatal(err)
		}
	}
}
