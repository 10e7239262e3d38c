package report

import (
	"html/template"
	"io"

	"toolctl.dev/toolctl/pkg/scenario"
)

// HTML writes the coverage of scenarios as an HTML page.
func HTML(w io.Writer, c *scenario.Coverage) error { return coveragePage.Execute(w, c) }

// coveragePage is a self-contained page.
var coveragePage = template.Must(template.New("coverage").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Coverage of scenarios</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a; background: #fff; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #ccc; vertical-align: top; }
.yes { color: #0a5c1f; } .no { color: #9b1111; }
code { overflow-wrap: anywhere; }
</style>
</head>
<body>
<h1>Coverage of scenarios</h1>
<p>{{printf "%.1f" .Percent}}% covered: {{.Covered}} of {{.Total}}.</p>
{{define "objects"}}{{range .}}
<details{{if lt .Covered .Total}} open{{end}}>
<summary><strong>{{.Namespace}}/{{.Name}}</strong>: {{printf "%.1f" .Percent}}%, {{.Covered}} of {{.Total}}, {{.Calls}} times</summary>
<table>
<thead><tr><th scope="col">What</th><th scope="col">Name</th><th scope="col">Covered</th></tr></thead>
<tbody>{{range .Items}}
<tr><td>{{.Kind}}</td><td><code>{{.Name}}</code></td><td>{{if .Covered}}<span class="yes">yes</span>{{else}}<span class="no">no</span>{{end}}</td></tr>{{end}}
</tbody>
</table>
</details>{{end}}{{end}}
<h2>Tools</h2>
{{template "objects" .Tools}}
<h2>Policies</h2>
{{template "objects" .Policies}}
</body>
</html>
`))
