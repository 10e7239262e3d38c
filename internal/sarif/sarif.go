package lint

import (
	"net/url"
	"path/filepath"
	"strings"
)

// sarifLog is the part of SARIF 2.1.0 (OASIS, errata 01) that findings need.
type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool struct {
		Driver sarifDriver `json:"driver"`
	} `json:"tool"`
	Language   string        `json:"language"`
	ColumnKind string        `json:"columnKind"`
	Results    []sarifResult `json:"results"`
}

type sarifDriver struct {
	Name           string      `json:"name"`
	Version        string      `json:"version,omitempty"`
	InformationURI string      `json:"informationUri"`
	Rules          []sarifRule `json:"rules"`
}

type sarifText struct {
	Text string `json:"text"`
}

type sarifRule struct {
	ID            string     `json:"id"`
	Short         sarifText  `json:"shortDescription"`
	Help          sarifText  `json:"help"`
	HelpURI       string     `json:"helpUri"`
	Configuration sarifLevel `json:"defaultConfiguration"`
}

type sarifLevel struct {
	Level string `json:"level"`
}

type sarifResult struct {
	RuleID       string          `json:"ruleId"`
	RuleIndex    int             `json:"ruleIndex"`
	Level        string          `json:"level"`
	Message      sarifText       `json:"message"`
	Locations    []sarifLocation `json:"locations"`
	Suppressions []sarifIgnored  `json:"suppressions,omitempty"`
}

type sarifIgnored struct {
	Kind          string `json:"kind"`
	Justification string `json:"justification"`
}

type sarifLocation struct {
	Physical *sarifPhysical `json:"physicalLocation,omitempty"`
	Logical  []sarifLogical `json:"logicalLocations"`
}

type sarifPhysical struct {
	Artifact struct {
		URI string `json:"uri"`
	} `json:"artifactLocation"`
	Region *sarifRegion `json:"region,omitempty"`
}

type sarifRegion struct {
	StartLine   int `json:"startLine"`
	StartColumn int `json:"startColumn,omitempty"`
}

type sarifLogical struct {
	Name          string `json:"name"`
	FullyQualifed string `json:"fullyQualifiedName"`
	Kind          string `json:"kind"`
}

// SARIF returns the report in the Static Analysis Results Interchange Format 2.1.0, to be
// encoded as JSON. What annotations ignore is in it as suppressed. The version is that of
// the program, or "".
func (r Report) SARIF(version string) any {
	run := sarifRun{Language: "en-US", ColumnKind: "unicodeCodePoints", Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{Name: "toolctl lint", Version: version, InformationURI: "https://toolctl.dev/docs/lint"}
	index := map[string]int{}
	for i, rule := range Rules() {
		index[rule.ID] = i
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{rule.ID, sarifText{rule.Summary}, sarifText{rule.Fix}, rule.Page(), sarifLevel{level(rule.Severity)}})
	}
	for _, fs := range [][]Finding{r.Findings, r.Ignored} {
		for _, f := range fs {
			out := sarifResult{RuleID: f.Rule, RuleIndex: index[f.Rule], Level: level(f.Severity), Message: sarifText{f.Message + ". " + f.Fix}}
			at := sarifLocation{Logical: []sarifLogical{{Name: f.Name, FullyQualifed: f.Kind + "/" + f.Namespace + "/" + f.Name + f.Path, Kind: "object"}}}
			if f.Source.File != "" {
				at.Physical = &sarifPhysical{}
				at.Physical.Artifact.URI = fileURI(f.Source.File)
				if f.Source.Line > 0 {
					at.Physical.Region = &sarifRegion{f.Source.Line, f.Source.Column}
				}
			}
			out.Locations = []sarifLocation{at}
			if f.Reason != "" {
				out.Suppressions = []sarifIgnored{{"inSource", f.Reason}}
			}
			run.Results = append(run.Results, out)
		}
	}
	return sarifLog{Schema: "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}}
}

// fileURI is a relative reference for a path that is relative, so that a service finds it in
// the repository (SARIF section 3.4.3).
func fileURI(path string) string {
	u := url.URL{Path: filepath.ToSlash(path)}
	if filepath.IsAbs(path) {
		u.Scheme = "file"
	}
	return strings.TrimPrefix(u.String(), "./")
}

func level(s Severity) string {
	if s == Info {
		return "note"
	}
	return string(s)
}
