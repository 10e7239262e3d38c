package template

import (
	"io"
	"testing"
	"text/template"
)

const benchSource = `{"location": "{{.location}}", "temperature": {{.temp}}, "units": "{{if .units}}{{.units}}{{else}}metric{{end}}", "days": [{{range $i, $d := .days}}{{if $i}}, {{end}}{"name": "{{$d}}"}{{end}}]}`

var benchArgs = map[string]any{"location": "Oslo, Norway", "temp": int64(21), "days": []any{"mon", "tue", "wed"}}

// BenchmarkJSON is for comparison with BenchmarkFloor, which renders the same template without escapes, limits and
// checks.
func BenchmarkJSON(b *testing.B) {
	t, err := ParseJSON("m", benchSource)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := t.Render(b.Context(), benchArgs); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkText(b *testing.B) {
	t, err := ParseText("m", benchSource, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := t.Render(b.Context(), benchArgs); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFloor(b *testing.B) {
	t := template.Must(template.New("").Parse(benchSource))
	b.ReportAllocs()
	for b.Loop() {
		if err := t.Execute(io.Discard, benchArgs); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		if _, err := ParseJSON("m", benchSource); err != nil {
			b.Fatal(err)
		}
	}
}
