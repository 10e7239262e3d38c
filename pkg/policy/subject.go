package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/wirename"
)

// Subject is the tool of a call.
type Subject struct {
	// Namespace is the namespace of the tool, never empty.
	Namespace string
	// Name is the name of the tool for clients: name, or server__tool.
	Name string
	// Labels are the labels of the tool.
	Labels map[string]string
	// ServerLabels are the labels of the MCPServer that it calls, and of that server's own tools: a
	// policy that governs these also governs the tool.
	ServerLabels map[string]string
	// Server and Remote are the MCPServer and its tool that the tool calls; empty if the tool calls no server.
	Server, Remote string
	// Discovered reports that a server offers the tool and no manifest declares it.
	Discovered bool
	// Bare reports that a call of Remote alone reaches this tool.
	Bare bool
}

// Offered returns the subject of a tool or prompt that an MCP server offers, from the subject of the server.
func (t *Subject) Offered(remote string) Subject {
	return Subject{Namespace: t.Namespace, Name: t.Server + "__" + remote, ServerLabels: t.ServerLabels, Server: t.Server, Remote: remote, Discovered: true}
}

// names returns the unambiguous names of the tool, its own name first.
func (t *Subject) names() []string {
	all := []string{t.Name, t.Namespace + "/" + t.Name}
	if t.Server != "" {
		for _, n := range []string{t.Server + "__" + t.Remote, t.Server + "." + t.Remote, v1.MCPPrefix + t.Server + "__" + t.Remote} {
			all = append(all, n, t.Namespace+"/"+n)
		}
	}
	return all
}

// named reports whether a pattern matches one of names. It builds no name, because most patterns match few of many tools.
func (t *Subject) named(pattern string) bool {
	for namespace, slash := t.Namespace, "/"; ; namespace, slash = "", "" {
		if fitsJoined(pattern, namespace, slash, t.Name) || t.Server != "" && (fitsJoined(pattern, namespace, slash, t.Server, "__", t.Remote) ||
			fitsJoined(pattern, namespace, slash, t.Server, ".", t.Remote) || fitsJoined(pattern, namespace, slash, v1.MCPPrefix, t.Server, "__", t.Remote)) {
			return true
		}
		if slash == "" {
			return false
		}
	}
}

// fitsJoined is [v1.MatchPattern] for a name in parts.
func fitsJoined(pattern string, parts ...string) bool {
	rest, open := strings.CutSuffix(pattern, "*")
	for _, part := range parts {
		n := min(len(rest), len(part))
		if rest[:n] != part[:n] {
			return false
		}
		if rest = rest[n:]; n < len(part) {
			return open
		}
	}
	return rest == ""
}

// mayAlias reports whether a pattern may match one of aliases: it agrees with the beginning of one.
func (t *Subject) mayAlias(pattern string) bool {
	stem := strings.TrimSuffix(pattern, "*")
	return slices.ContainsFunc([]string{wirename.Stem(t.Name), wirename.Clean(t.Namespace), t.Namespace, t.Remote}, func(begin string) bool {
		n := min(len(stem), len(begin))
		return stem[:n] == begin[:n]
	})
}

// aliases returns further names, which other tools may also have: the names that clients and models use, and the name
// on the server.
func (t *Subject) aliases() []string {
	all := wirename.Forms(wirename.ID{Namespace: t.Namespace, Name: t.Name, Full: t.full()})
	if t.Server != "" {
		all = append(all, t.Remote, t.Namespace+"/"+t.Remote)
	}
	return all
}

// Names returns all names that refusing rules match with their patterns.
func (t *Subject) Names() []string { return append(t.names(), t.aliases()...) }

// full returns the name of the tool as a [wirename.ID].
func (t *Subject) full() string {
	if t.Discovered {
		return t.called()
	}
	return t.Namespace + "/" + t.Name
}

// called returns the name of the target of the tool's calls. Two tools that are bound to the same tool of a server
// have the same target.
func (t *Subject) called() string {
	if t.Server != "" {
		return t.Namespace + "/" + t.Server + "__" + t.Remote
	}
	return t.Namespace + "/" + t.Name
}

// fit is a pattern and a name of a tool that matches it.
type fit struct{ pattern, name string }

// among returns the first name of the tool that matches a pattern. Rules that refuse or restrict use it, so it checks
// every name, even names that other tools also have.
func (t *Subject) among(patterns []string) (fit, bool) {
	if !slices.ContainsFunc(patterns, func(p string) bool { return t.named(p) || t.mayAlias(p) }) {
		return fit{}, false
	}
	for _, names := range [...][]string{t.names(), t.aliases()} {
		for _, n := range names {
			if p := firstFit(patterns, n); p != "" {
				return fit{p, n}, true
			}
		}
	}
	return fit{}, false
}

// allowed is among for rules that allow a tool. A server chooses the names of its tools, so such a name alone is
// enough only if the pattern is the exact name and the name reaches this tool.
func (t *Subject) allowed(patterns []string) (fit, bool) {
	if slices.ContainsFunc(patterns, t.named) {
		for _, n := range t.names() {
			if p := firstFit(patterns, n); p != "" {
				return fit{p, n}, true
			}
		}
	}
	if t.Server != "" && t.Bare && slices.Contains(patterns, t.Remote) {
		return fit{t.Remote, t.Remote}, true
	}
	return fit{}, false
}

// Refused reports whether any name of the tool matches a pattern, as in a blocklist.
func (t *Subject) Refused(patterns []string) bool {
	_, ok := t.among(patterns)
	return ok
}

// Allowed reports whether a name that only this tool can have matches a pattern, as in an allowlist.
func (t *Subject) Allowed(patterns []string) bool {
	_, ok := t.allowed(patterns)
	return ok
}

// HasLabels reports whether the tool, or the MCPServer that it calls, has all of the labels.
func (t *Subject) HasLabels(want map[string]string) bool {
	has := func(labels map[string]string) bool {
		for k, v := range want {
			if got, ok := labels[k]; !ok || got != v {
				return false
			}
		}
		return true
	}
	return has(t.Labels) || has(t.ServerLabels)
}

// as adds the name to a message about a pattern, unless it is the tool's own name.
func (f fit) as(t *Subject, text string) string {
	if f.name == t.Name {
		return text
	}
	return fmt.Sprintf("%s, which matches the name %q", text, f.name)
}

// policy is the shared part of the rules of a ToolPolicy.
type policy struct {
	namespace string
	name      string // name for messages: with the namespace unless it is "default"
	key       string // prefix of its counters' keys
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

// stranger returns why the policy does not govern the principal's calls; "" if it does.
func (p *policy) stranger(principal string) string {
	switch {
	case p.governs(principal):
		return ""
	case principal == "":
		return fmt.Sprintf("match.principals is %s; the caller has no principal", list(p.match.Principals))
	}
	return fmt.Sprintf("match.principals is %s; the caller is %q", list(p.match.Principals), principal)
}

// personal reports whether the policy governs only the calls of some principals.
func (p *policy) personal() bool { return len(p.match.Principals) > 0 }

func (p *policy) governs(principal string) bool {
	return !p.personal() || slices.ContainsFunc(p.match.Principals, func(pattern string) bool { return v1.MatchPattern(pattern, principal) })
}

// mismatch returns why the policy does not govern the tool; "" if it does.
func (p *policy) mismatch(t Subject) string {
	if p.namespace != t.Namespace {
		return fmt.Sprintf("governs the tools of namespace %q; this tool is in namespace %q", p.namespace, t.Namespace)
	}
	if _, ok := t.among(p.match.Tools); len(p.match.Tools) > 0 && !ok {
		return fmt.Sprintf("match.tools is %s", list(p.match.Tools))
	}
	if t.HasLabels(p.match.Labels) {
		return ""
	}
	for _, k := range slices.Sorted(maps.Keys(p.match.Labels)) {
		want := p.match.Labels[k]
		switch got, ok := t.Labels[k]; {
		case !ok:
			return fmt.Sprintf("match.labels requires %s: %q; the tool does not have this label", k, want)
		case got != want:
			return fmt.Sprintf("match.labels requires %s: %q; the tool has %q", k, want, got)
		}
	}
	return ""
}

// firstFit returns the first pattern that matches the name of a tool, or "".
func firstFit(patterns []string, tool string) string {
	for _, p := range patterns {
		if v1.MatchPattern(p, tool) {
			return p
		}
	}
	return ""
}

// list formats the first four patterns for a message.
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
