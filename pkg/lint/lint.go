// Package lint looks over manifests for what is legal and unwise: what no client or model
// provider takes, what misleads a model, what nothing guards. Each rule has an id, a
// severity and a fix, and is ignored for one object by an annotation with a reason:
//
//	metadata:
//	  annotations:
//	    ignore-lint.toolctl.dev/no-output-schema: the service has none
//
// [Rules] is the one list of them. What is illegal is not for lint: reading the manifests
// and registry.Check find it.
package lint

import (
	"cmp"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/lock"
)

// Severity is how much a finding matters.
type Severity string

// The severities, the gravest first.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Info    Severity = "info"
)

// AtLeast reports whether s is as grave as t, or graver.
func (s Severity) AtLeast(t Severity) bool { return weight(s) >= weight(t) }

func weight(s Severity) int { return slices.Index([]Severity{Info, Warning, Error}, s) }

// IgnorePrefix begins the annotations that ignore a rule for their object; the rule's id
// follows, and the value is the reason.
const IgnorePrefix = "ignore-lint.toolctl.dev/"

// Rule is one thing that is looked for.
type Rule struct {
	// ID names the rule, such as no-output-schema.
	ID       string   `json:"id"`
	Severity Severity `json:"severity"`
	// Summary says what is found, Fix what to do about it.
	Summary string `json:"summary"`
	Fix     string `json:"fix"`

	check func(*surface, func(Finding))
}

// Page is where the rule is explained.
func (r Rule) Page() string { return "https://toolctl.dev/docs/lint#" + r.ID }

// Finding is one place where a rule is broken.
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
	// Reason is why the finding is ignored; empty for one that counts.
	Reason string `json:"reason,omitempty"`

	also *v1.Header // another object whose annotation ignores the finding
	head *v1.Header
}

// Options say what is looked for. The zero value looks for all that needs no limit.
type Options struct {
	// Lock is what is known of the tools of MCP servers.
	Lock lock.File
	// MaxTokens is the maximum number of tokens that all tools together may cost a model. 0: no limit.
	MaxTokens int
	// Only are the rules to check, Skip those to leave out, by ID. Default: all.
	Only, Skip []string
}

// Report is what was found.
type Report struct {
	// Findings are sorted by place; those that annotations ignore are apart.
	Findings []Finding `json:"findings"`
	Ignored  []Finding `json:"ignored"`
	Tokens   Tokens    `json:"tokens"`
}

// Tokens is what the tools cost a model before it reads a word.
type Tokens struct {
	// Estimate names how it was reckoned.
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

// Check looks over objects. Broken ones are left out: their errors are to be fixed first.
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
