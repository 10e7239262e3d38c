// Package lint checks valid manifests for likely mistakes and risks: definitions that clients or model
// providers reject, texts that mislead models, and tools without safeguards. Each rule has an id, a
// severity and a fix. An annotation with a reason ignores a rule for one object:
//
//	metadata:
//	  annotations:
//	    ignore-lint.toolctl.dev/no-output-schema: the service has none
//
// [Rules] is the only list of rules. Reading the manifests and registry.Check find errors; lint does not.
package lint

import (
	"cmp"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/lock"
)

// Severity is the importance of a finding.
type Severity string

// The severities, the most severe first.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Info    Severity = "info"
)

// AtLeast reports whether s is as severe as t, or more severe.
func (s Severity) AtLeast(t Severity) bool { return weight(s) >= weight(t) }

func weight(s Severity) int { return slices.Index([]Severity{Info, Warning, Error}, s) }

// IgnorePrefix is the prefix of annotations that ignore a rule for their object. The rule's ID follows
// it, and the value is the reason.
const IgnorePrefix = "ignore-lint.toolctl.dev/"

// Rule is one check.
type Rule struct {
	// ID names the rule, such as no-output-schema.
	ID       string   `json:"id"`
	Severity Severity `json:"severity"`
	// Summary describes the finding, and Fix the remedy.
	Summary string `json:"summary"`
	Fix     string `json:"fix"`

	check func(*surface, func(Finding))
}

// Page returns the URL of the rule's documentation.
func (r Rule) Page() string { return "https://toolctl.dev/docs/lint#" + r.ID }

// Finding is one violation of a rule.
type Finding struct {
	Rule      string   `json:"rule"`
	Severity  Severity `json:"severity"`
	Kind      string   `json:"kind"`
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	// Path is the JSON pointer of the field, "" for the object.
	Path    string    `json:"path"`
	Message string    `json:"message"`
	Fix     string    `json:"fix"`
	Page    string    `json:"page"`
	Source  v1.Source `json:"source,omitzero"`
	// Reason is the value of the annotation that ignores the finding, or "".
	Reason string `json:"reason,omitempty"`

	also *v1.Header // another object whose annotation ignores the finding
	head *v1.Header
}

// Options select the checks. The zero value runs every check except the token limit.
type Options struct {
	// Lock holds the known tools of MCP servers.
	Lock lock.File
	// MaxTokens is the maximum number of tokens that all tools together may use in a model's context.
	// Default: no limit.
	MaxTokens int
	// Only lists the IDs of the rules to check, and Skip those to leave out. Default: all rules are
	// checked.
	Only, Skip []string
}

// Report is the result of a check.
type Report struct {
	// Findings and Ignored are sorted by place. Ignored holds the findings that annotations ignore.
	Findings []Finding `json:"findings"`
	Ignored  []Finding `json:"ignored"`
	Tokens   Tokens    `json:"tokens"`
}

// Tokens is the size of the tool definitions in a model's context.
type Tokens struct {
	// Estimate describes the method of estimation.
	Estimate string `json:"estimate"`
	Tools    int    `json:"tools"`
	Total    int    `json:"total"`
}

// Count returns how many findings have each severity.
func (r Report) Count() map[Severity]int {
	n := map[Severity]int{}
	for _, f := range r.Findings {
		n[f.Severity]++
	}
	return n
}

// Check checks objects. It skips broken objects, because their errors must be fixed first.
func Check(objects []v1.Object, o Options) Report {
	s := newSurface(objects, o)
	r := Report{Findings: []Finding{}, Ignored: []Finding{}, Tokens: s.tokens()}
	for _, rule := range Rules() {
		if len(o.Only) > 0 && !slices.Contains(o.Only, rule.ID) || slices.Contains(o.Skip, rule.ID) {
			continue
		}
		rule.check(s, func(f Finding) {
			f.Rule, f.Severity, f.Page = rule.ID, rule.Severity, rule.Page()
			f.Fix = cmp.Or(f.Fix, rule.Fix)
			if f.head != nil {
				k := f.head.Key()
				f.Kind, f.Namespace, f.Name, f.Source = k.Kind, k.Namespace, k.Name, f.head.Field(f.Path)
			}
			if f.Reason = cmp.Or(ignored(f.head, rule.ID), ignored(f.also, rule.ID)); f.Reason != "" {
				r.Ignored = append(r.Ignored, f)
			} else {
				r.Findings = append(r.Findings, f)
			}
		})
	}
	for _, fs := range [][]Finding{r.Findings, r.Ignored} {
		slices.SortStableFunc(fs, func(a, b Finding) int {
			return cmp.Or(strings.Compare(a.Source.File, b.Source.File), cmp.Compare(a.Source.Line, b.Source.Line), cmp.Compare(a.Source.Column, b.Source.Column),
				strings.Compare(a.Kind, b.Kind), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.Path, b.Path), strings.Compare(a.Rule, b.Rule))
		})
	}
	return r
}

func ignored(h *v1.Header, rule string) string {
	if h == nil {
		return ""
	}
	return strings.TrimSpace(h.Metadata.Annotations[IgnorePrefix+rule])
}
