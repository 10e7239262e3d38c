package main

import (
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
)

// sayTurns logs which policies count in turns, since MCP knows none.
func (o *serveOptions) sayTurns(w *workspace) {
	for _, obj := range w.reg.Objects() {
		var rules *v1.ToolPolicySpec
		switch m := obj.(type) {
		case *v1.ToolPolicy:
			rules = &m.Spec
		case *v1.Prompt:
			rules = m.Spec.Policy
		}
		if rules != nil && countsTurns(rules) {
			o.log.Info("MCP has no turns: a turn that calls do not name ends once their session had no call for --turn-idle", "kind", obj.Head().Kind,
				"policy", obj.Head().Metadata.Name, "namespace", obj.Head().Namespace(), "turn_idle", o.turnIdle.String())
		}
	}
}

func countsTurns(s *v1.ToolPolicySpec) bool {
	return s.MaxToolCallsPerTurn != nil || slices.ContainsFunc(s.Limits, func(l v1.Limit) bool { return l.Per == v1.PerTurn })
}
