package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// limits returns the rules of spec.limits. Each rule limits the number of calls of some tools in a span; the calls of
// these tools are counted together.
func limits(s *v1.ToolPolicySpec) []*rule {
	var rules []*rule
	for i, l := range s.Limits {
		r := &rule{field: v1.Pointer("/spec/limits", strconv.Itoa(i))}
		if l.MaxCalls == nil || !slices.Contains(spans(), l.Per) || !knownBy(l.By) {
			// Validation rejects such a limit. Ignoring it here would mean no limit at all,
			// so the calls are refused.
			r.judge = func(t *Subject) verdict {
				if _, ok := t.among(l.Tools); len(l.Tools) > 0 && !ok {
					return verdict{ok: true, why: fmt.Sprintf("counts only calls of %s", list(l.Tools))}
				}
				if !knownBy(l.By) {
					return verdict{why: "the limit is broken: expected by to be session, principal, tool or all"}
				}
				return verdict{why: "the limit is broken: expected max_calls, and per to be turn, session, minute, hour or day"}
			}
		} else {
			r.count = newCount(*l.MaxCalls, l.Per, l.Tools)
			r.count.apart(l.By)
			r.count.id, r.count.name = limitID(&l), l.Name
		}
		rules = append(rules, r)
	}
	return rules
}

func knownBy(by []string) bool {
	all := []string{v1.BySession, v1.ByPrincipal, v1.ByTool, v1.ByAll}
	return !slices.ContainsFunc(by, func(b string) bool { return !slices.Contains(all, b) })
}

// limitID identifies a limit within its policy by its name, or else by the tools that it counts, but not by its
// position and max_calls. The span and what it counts by are also part of the key, because a count cannot continue in
// another span.
func limitID(l *v1.Limit) string {
	if l.Name != "" {
		return "limits=" + escape(l.Name)
	}
	tools := slices.Clone(l.Tools)
	slices.Sort(tools)
	text := strings.Join(slices.Compact(tools), "\x00")
	if text == "" {
		return "limits:all"
	}
	sum := sha256.Sum256([]byte(text))
	return "limits:" + hex.EncodeToString(sum[:12])
}
