package lint

import (
	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/sarif"
)

// SARIF returns the report in the Static Analysis Results Interchange Format 2.1.0, to be encoded
// as JSON. Findings that annotations ignore are included as suppressed. version is the version of
// the program, or "".
func (r Report) SARIF(version string) any {
	d := sarif.Driver{Name: "toolctl lint", Version: version, URI: "https://toolctl.dev/docs/lint"}
	for _, rule := range Rules() {
		d.Rules = append(d.Rules, sarif.Rule{ID: rule.ID, Summary: rule.Summary, Help: rule.Fix, URI: rule.Page(), Level: level(rule.Severity)})
	}
	var results []sarif.Result
	for _, fs := range [][]Finding{r.Findings, r.Ignored} {
		for _, f := range fs {
			results = append(results, sarif.Result{Rule: f.Rule, Level: level(f.Severity), Message: f.Message + ". " + f.Fix, Source: f.Source,
				Object: v1.Key{Kind: f.Kind, Namespace: f.Namespace, Name: f.Name}, Path: f.Path, Suppressed: f.Reason})
		}
	}
	return sarif.Log(d, results)
}

func level(s Severity) sarif.Level {
	if s == Info {
		return sarif.Note
	}
	return sarif.Level(s)
}
