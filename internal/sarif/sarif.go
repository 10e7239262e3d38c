// Package sarif writes findings in the Static Analysis Results Interchange Format 2.1.0
// (OASIS, errata 01), which code scanning services read.
package sarif

import (
	"net/url"
	"path/filepath"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Driver is the command that found the results. The version is that of the program, or "".
type Driver struct {
	Name, Version, URI string
	Rules              []Rule
}

// Rule is one kind of finding.
type Rule struct {
	ID, Summary, Help, URI string
	Level                  Level
}

// Level is how severe a finding is (SARIF section 3.27.10).
type Level string

// The levels.
const (
	Error   Level = "error"
	Warning Level = "warning"
	Note    Level = "note"
)

// Result is one finding: Rule is the ID of one of the driver's rules, Object the object that
// it is about, and Path the JSON pointer of the field. Suppressed is the reason for which
// it does not count; "" for one that counts.
type Result struct {
	Rule       string
	Level      Level
	Message    string
	Source     v1.Source
	Object     v1.Key
	Path       string
	Suppressed string
}

// sarifLog is the part of the format that findings need.
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
	Level Level `json:"level"`
}

type sarifResult struct {
	RuleID       string          `json:"ruleId"`
	RuleIndex    int             `json:"ruleIndex"`
	Level        Level           `json:"level"`
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
	Logical  []sarifLogical `json:"logicalLocations,omitempty"`
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
	Name           string `json:"name"`
	FullyQualified string `json:"fullyQualifiedName"`
	Kind           string `json:"kind"`
}

// Log returns what is to be encoded as JSON.
func Log(d Driver, results []Result) any {
	run := sarifRun{Language: "en-US", ColumnKind: "unicodeCodePoints", Results: make([]sarifResult, 0, len(results))}
	run.Tool.Driver = sarifDriver{Name: d.Name, Version: d.Version, InformationURI: d.URI, Rules: make([]sarifRule, 0, len(d.Rules))}
	index := map[string]int{}
	for i, r := range d.Rules {
		index[r.ID] = i
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{r.ID, sarifText{r.Summary}, sarifText{r.Help}, r.URI, sarifLevel{r.Level}})
	}
	for _, r := range results {
		out := sarifResult{RuleID: r.Rule, RuleIndex: index[r.Rule], Level: r.Level, Message: sarifText{r.Message}}
		var at sarifLocation
		if r.Object.Name != "" {
			at.Logical = []sarifLogical{{Name: r.Object.Name, FullyQualified: r.Object.Kind + "/" + r.Object.Namespace + "/" + r.Object.Name + r.Path, Kind: "object"}}
		}
		if r.Source.File != "" {
			at.Physical = &sarifPhysical{}
			at.Physical.Artifact.URI = fileURI(r.Source.File)
			if r.Source.Line > 0 {
				at.Physical.Region = &sarifRegion{r.Source.Line, r.Source.Column}
			}
		}
		out.Locations = []sarifLocation{at}
		if r.Suppressed != "" {
			out.Suppressions = []sarifIgnored{{"inSource", r.Suppressed}}
		}
		run.Results = append(run.Results, out)
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
