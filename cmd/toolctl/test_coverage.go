package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/scenario"
	"toolctl.dev/toolctl/pkg/scenario/report"
)

// reportCoverage prints the coverage as a table, on stderr if stdout has a report for machines, or writes it to the
// file given with --coverage.
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
		if err := report.HTML(&b, cov); err != nil {
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
