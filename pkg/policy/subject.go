package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Subject is the tool that a call is for.
type Subject struct {
	// Namespace is the namespace of the tool, never empty.
	Namespace string
	// Name is the tool's name on the wire: name, or server__tool.
	Name string
	// Labels are the labels of the tool.
	Labels map[string]string
}

// policy is what the rules of one ToolPolicy share.
type policy struct {
	namespace string
	name      string // as people write it: with the namespace unless that is "default"
	key       string // the first part of its counters' keys
	audit     bool
	requires  bool // tool_choice is required
	match     v1.Match
}

func newPolicy(p *v1.ToolPolicy) *policy {
	c := &policy{
		namespace: p.Namespace(),
		name:      p.Metadata.Name,
		key:       escape(p.Namespace()) + "/" + escape(p.Metadata.Name),
		audit:     p.Spec.Mode == v1.PolicyAudit,
	}
	if c.namespace != v1.DefaultNamespace {
		c.name = c.namespace + "/" + c.name
	}
	c.requires = p.Spec.ToolChoice == v1.ToolChoiceRequired && !c.audit
	if p.Spec.Match != nil {
		c.match = *p.Spec.Match
	}
	return c
}

// stranger says why the policy does not govern the principal's calls; "" when it does.
func (p *policy) stranger(principal string) string {
	switch {
	case p.governs(principal):
		return ""
	case principal == "":
		return fmt.Sprintf("match.principals is %s; nobody is named as who calls", list(p.match.Principals))
	}
	return fmt.Sprintf("match.principals is %s; %q calls", list(p.match.Principals), principal)
}

// personal reports whether it depends on the principal what the policy governs.
func (p *policy) personal() bool { return len(p.match.Principals) > 0 }

func (p *policy) governs(principal string) bool {
	return !p.personal() || slices.ContainsFunc(p.match.Principals, func(pattern string) bool { return v1.MatchPattern(pattern, principal) })
}

// mismatch says why the policy does not govern the tool; "" when it does.
func (p *policy) mismatch(t Subject) string {
	if p.namespace != t.Namespace {
		return fmt.Sprintf("it governs the tools of namespace %q; this one is in %q", p.namespace, t.Namespace)
	}
	if len(p.match.Tools) > 0 && firstFit(p.match.Tools, t.Name) == "" {
		return fmt.Sprintf("match.tools is %s", list(p.match.Tools))
	}
	for _, k := range slices.Sorted(maps.Keys(p.match.Labels)) {
		want := p.match.Labels[k]
		switch got, ok := t.Labels[k]; {
		case !ok:
			return fmt.Sprintf("match.labels wants %s: %q; the tool has no such label", k, want)
		case got != want:
			return fmt.Sprintf("match.labels wants %s: %q; the tool has %q", k, want, got)
		}
	}
	return ""
}

// firstFit returns the first pattern that the name of a tool fits, or "".
func firstFit(patterns []string, tool string) string {
	for _, p := range patterns {
		if v1.MatchTool(p, tool) {
			return p
		}
	}
	return ""
}

// list writes patterns for a sentence, at most four of them.
func list(patterns []string) string {
	const most = 4
	var b strings.Builder
	for i, p := range patterns {
		if i == most {
			fmt.Fprintf(&b, " and %d more", len(patterns)-most)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", p)
	}
	return b.String()
}
