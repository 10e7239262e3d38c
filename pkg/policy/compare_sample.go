package policy

import (
	"maps"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Tools are the tools of manifests, for [Compare]. They are safe for concurrent use.
type Tools struct{ byNamespace map[string][]Subject } // each sorted by name

// NewTools returns Tools. Of two tools with the same name, it keeps the first.
func NewTools(subjects []Subject) *Tools {
	t := &Tools{byNamespace: map[string][]Subject{}}
	for _, s := range subjects {
		t.byNamespace[s.Namespace] = append(t.byNamespace[s.Namespace], s)
	}
	for ns, list := range t.byNamespace {
		slices.SortStableFunc(list, func(a, b Subject) int { return strings.Compare(a.Name, b.Name) })
		t.byNamespace[ns] = slices.CompactFunc(list, func(a, b Subject) bool { return a.Name == b.Name })
	}
	return t
}

// fitting yields the tools whose own name matches a pattern, in order.
func (t *Tools) fitting(namespace, pattern string, yield func(Subject) bool) {
	if t == nil {
		return
	}
	list := t.byNamespace[namespace]
	from, _ := slices.BinarySearchFunc(list, strings.TrimSuffix(pattern, "*"), func(s Subject, name string) int { return strings.Compare(s.Name, name) })
	for _, s := range list[from:] {
		if !v1.MatchPattern(pattern, s.Name) || !yield(s) {
			return
		}
	}
}

// sample selects the tools whose calls are tried: some for each pattern of the policies, and some that match no
// pattern.
func (c *comparison) sample(known *Tools) []sampled {
	const each = 2 // tools for each pattern
	namespace := c.policies[0].Namespace()
	patterns := c.patterns()
	labels := c.labels()
	var out []sampled
	seen := map[string]bool{}
	add := func(s Subject, real bool) {
		id := s.Name
		for _, k := range slices.Sorted(maps.Keys(s.Labels)) {
			id += "\x00" + k + "\x00" + s.Labels[k]
		}
		if !seen[id] {
			seen[id] = true
			out = append(out, sampled{was: s, now: s, real: real})
		}
	}
	covered := map[string]bool{}
	for _, p := range patterns {
		for _, want := range labels {
			n := 0
			known.fitting(namespace, p, func(s Subject) bool {
				if s.HasLabels(want) {
					add(s, true)
					covered[p] = covered[p] || !strings.HasSuffix(p, "*") || !narrower(patterns, p, s.Name)
					n++
				}
				return n < each
			})
		}
	}
	for _, want := range labels { // tools that match no pattern
		n := 0
		known.fitting(namespace, "*", func(s Subject) bool {
			if s.HasLabels(want) && firstFit(patterns, s.Name) == "" {
				add(s, true)
				n++
			}
			return n == 0
		})
	}
	for _, p := range append(patterns, "*") {
		if covered[p] && len(labels) == 1 {
			continue
		}
		for _, want := range labels {
			add(madeUp(namespace, p, patterns, want), false)
		}
	}
	return out
}

// patterns returns the distinct patterns for tool names in both policies.
func (c *comparison) patterns() []string {
	var all []string
	for _, p := range c.policies {
		s := &p.Spec
		all = slices.Concat(all, s.Blocklist, s.Allowlist, s.RequireApproval)
		for _, l := range s.Limits {
			all = append(all, l.Tools...)
		}
		if s.Match != nil {
			all = append(all, s.Match.Tools...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// labels returns the label sets that the policies distinguish, starting with no labels.
func (c *comparison) labels() []map[string]string {
	all := []map[string]string{nil}
	for _, p := range c.policies {
		if m := p.Spec.Match; m != nil && len(m.Labels) > 0 && !slices.ContainsFunc(all, func(l map[string]string) bool { return maps.Equal(l, m.Labels) }) {
			all = append(all, m.Labels)
		}
	}
	return all
}

// narrower reports whether a name that matches a pattern also matches a longer one.
func narrower(patterns []string, than, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return len(p) > len(than) && v1.MatchPattern(p, name) })
}

// madeUp returns a tool that matches a pattern and, if possible, no longer pattern.
func madeUp(namespace, pattern string, patterns []string, labels map[string]string) Subject {
	name, star := strings.CutSuffix(pattern, "*")
	if star {
		stem := name
		for _, end := range []string{"any", "x", "0", "q7", "z_9"} {
			name = stem + end
			if pattern == "*" && stem == "" {
				name = "tool-" + end
			}
			if !narrower(patterns, pattern, name) {
				break
			}
		}
	}
	name = strings.TrimPrefix(name, namespace+"/")
	s := Subject{Namespace: namespace, Name: name, Labels: labels}
	if server, remote, ok := strings.Cut(strings.TrimPrefix(name, v1.MCPPrefix), "__"); ok && server != "" && remote != "" {
		s.Name, s.Server, s.Remote, s.Discovered, s.Bare = server+"__"+remote, server, remote, true, true
	}
	return s
}
