package main

import (
	"bytes"
	"fmt"
	"html/template"
	"os"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/scenario"
)

// reportCoverage prints coverage as a table, beside a report that is for machines on
// stderr, or writes it into the file that was named.
func (o *testOptions) reportCoverage(format string, cov *scenario.Coverage) error {
	if cov == nil || o.coverage == "" {
		return nil
	}
	var b bytes.Buffer
	switch {
	case strings.HasSuffix(o.coverage, ".json"):
		if err := printJSON(&b, cov); err != nil {
			return err
		}
	case strings.HasSuffix(o.coverage, ".html"):
		if err := coveragePage.Execute(&b, cov); err != nil {
			return err
		}
	default:
		w := o.out
		if format != "table" {
			w = o.err
		}
		fmt.Fprintln(w)
		t := newTable(w, "COVERED", "OF", "PERCENT", "CALLS", "NAME", "NOT COVERED")
		for _, tool := range cov.Tools {
			t.row(coverageRow("tool", tool)...)
		}
		for _, p := range cov.Policies {
			t.row(coverageRow("toolpolicy", p)...)
		}
		t.row(fmt.Sprint(cov.Covered), fmt.Sprint(cov.Total), fmt.Sprintf("%.1f%%", cov.Percent), "", "total", "")
		return t.Flush()
	}
	return os.WriteFile(o.coverage, b.Bytes(), 0o644)
}

func coverageRow(kind string, c scenario.CoveredObject) []string {
	name := kind + "/" + c.Name
	if c.Namespace != v1.DefaultNamespace {
		name = c.Namespace + " " + name
	}
	var missing []string
	for _, item := range c.Items {
		if !item.Covered {
			missing = append(missing, strings.TrimSpace(item.Kind+" "+item.Name))
		}
	}
	return []string{fmt.Sprint(c.Covered), fmt.Sprint(c.Total), fmt.Sprintf("%.1f%%", c.Percent), fmt.Sprint(c.Calls), name, strings.Join(missing, ", ")}
}

// coveragePage is one page that needs nothing from anywhere else.
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
