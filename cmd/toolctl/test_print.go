package main

import (
	"toolctl.dev/toolctl/pkg/scenario"
	"toolctl.dev/toolctl/pkg/scenario/report"
)

// printReport prints the outcome of scenarios.
func (o *testOptions) printReport(format string, r *scenario.Report) error {
	style := report.Style{Noun: o.noun, Step: o.step, Calls: o.verbose, Paint: func(status, text string) string {
		color := green
		switch status {
		case scenario.Failed, scenario.Invalid:
			color = red
		case scenario.Skipped:
			color = yellow
		}
		return o.paint(color, text)
	}}
	switch format {
	case "json":
		return printJSON(o.out, r)
	case "junit":
		return report.JUnit(o.out, r)
	case "tap":
		return report.TAP(o.out, r, style)
	case "github":
		report.GitHub(o.out, r, style)
	default:
		report.Text(o.out, r, style)
	}
	return nil
}
