package main

import (
	"toolctl.dev/toolctl/pkg/scenario"
	"toolctl.dev/toolctl/pkg/scenario/report"
)

// printReport prints the results of scenarios. noun and step replace the words scenario and turn; "" keeps them.
func (a *app) printReport(format string, r *scenario.Report, noun, step string) error {
	style := report.Style{Noun: noun, Step: step, Calls: a.verbose, Paint: func(status, text string) string {
		color := green
		switch status {
		case scenario.Failed, scenario.Invalid:
			color = red
		case scenario.Skipped:
			color = yellow
		}
		return a.paint(color, text)
	}}
	switch format {
	case "json":
		return printJSON(a.out, r)
	case "junit":
		return report.JUnit(a.out, r)
	case "tap":
		return report.TAP(a.out, r, style)
	case "github":
		report.GitHub(a.out, r, style)
	default:
		report.Text(a.out, r, style)
	}
	return nil
}
