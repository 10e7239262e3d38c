// Package sarif writes findings in the Static Analysis Results Interchange Format 2.1.0
// (OASIS, errata 01), which code scanning services read.
package sarif

import (
	"net/url"
	"path/filepath"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Driver is the command that found the results. Version is the version of the program, or "".
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

// Result is one finding. Rule is the ID of one of the driver's rules, Object the object that it is about, and Path the
// JSON pointer of the field. Suppressed is the reason why the finding does not count; "" if it counts.
type Result struct {
	Rule       string
	Level      Level
	Message    string
	Source     v1.Source
	Object     v1.Key
	Path       string
	Suppressed string
}

type object map[string]any

func text(s string) object { return object{"text": s} }

// Log returns the log of the results, to be encoded as JSON.
func Log(d Driver, results []Result) any {
	rules, index := make([]object, 0, len(d.Rules)), map[string]int{}
	for i, r := range d.Rules {
		index[r.ID] = i
		rules = append(rules, object{"id": r.ID, "shortDescription": text(r.Summary), "help": text(r.Help), "helpUri": r.URI, "defaultConfiguration": object{"level": r.Level}})
	}
	driver := object{"name": d.Name, "informationUri": d.URI, "rules": rules}
	if d.Version != "" {
		driver["version"] = d.Version
	}
	found := make([]object, 0, len(results))
	for _, r := range results {
		at := object{}
		if r.Object.Name != "" {
			at["logicalLocations"] = []object{{"name": r.Object.Name, "fullyQualifiedName": r.Object.Kind + "/" + r.Object.Namespace + "/" + r.Object.Name + r.Path, "kind": "object"}}
		}
		if r.Source.File != "" {
			place := object{"artifactLocation": object{"uri": fileURI(r.Source.File)}}
			if region := (object{"startLine": r.Source.Line, "startColumn": r.Source.Column}); r.Source.Line > 0 {
				if r.Source.Column == 0 {
					delete(region, "startColumn")
				}
				place["region"] = region
			}
			at["physicalLocation"] = place
		}
		result := object{"ruleId": r.Rule, "ruleIndex": index[r.Rule], "level": r.Level, "message": text(r.Message), "locations": []object{at}}
		if r.Suppressed != "" {
			result["suppressions"] = []object{{"kind": "inSource", "justification": r.Suppressed}}
		}
		found = append(found, result)
	}
	run := object{"tool": object{"driver": driver}, "language": "en-US", "columnKind": "unicodeCodePoints", "results": found}
	return object{"$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json", "version": "2.1.0", "runs": []object{run}}
}

// fileURI returns a relative reference for a relative path, so that a service finds the file in the repository (SARIF
// section 3.4.3).
func fileURI(path string) string {
	u := url.URL{Path: filepath.ToSlash(path)}
	if filepath.IsAbs(path) {
		u.Scheme = "file"
	}
	return strings.TrimPrefix(u.String(), "./")
}
