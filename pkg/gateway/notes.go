package gateway

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/envref"
	"toolctl.dev/toolctl/pkg/mcp/server"
	"toolctl.dev/toolctl/pkg/registry"
)

// noteApprovals logs that calls that need approval cannot be approved elsewhere.
func (g *Gateway) noteApprovals() {
	if g.opts.Store != nil || g.decided.Load() != nil {
		return
	}
	for _, o := range g.reg.Objects() {
		if p, ok := o.(*v1.ToolPolicy); ok && len(p.Spec.RequireApproval) > 0 && p.Spec.Mode != v1.PolicyAudit {
			g.log.Warn("without a store, only clients that can ask their user can approve calls that need approval: pass --store to approve them elsewhere", "policy", p.Metadata.Name, "namespace", p.Namespace())
			return
		}
	}
}

// noteToolsets logs the toolsets that nobody may use, because callers have no names without authentication.
func (g *Gateway) noteToolsets() {
	if g.http.Tokens != nil || g.http.OAuth != nil {
		return
	}
	for at, t := range g.Toolsets() {
		if (g.opts.Subset.Toolset == "" || g.opts.Subset.Toolset == at) && !t.Spec.Admits("", nil) {
			g.log.Warn("nobody can use a toolset with principals or groups, because clients do not authenticate: pass --token-file or --oauth-issuer", "toolset", at)
		}
	}
}

// unset logs the unset variables of tools, because clients do not see such tools. It skips a list that equals the one
// logged last.
func (w *warnings) unset(g *Gateway) {
	page, err := g.reg.List(registry.Query{Kind: v1.KindTool, Namespace: g.catalog.Namespace, Selector: g.catalog.Selector})
	if err != nil {
		return // the catalog reports them
	}
	lacking := map[string][]string{} // tools by reason
	for _, it := range page.Items {
		for _, why := range envref.Unreadable(slices.Clone(it.Reasons)) {
			lacking[why.Message] = append(lacking[why.Message], it.FullName)
		}
	}
	if reflect.DeepEqual(lacking, g.reload.unset) {
		return
	}
	g.reload.unset = lacking
	for _, why := range slices.Sorted(maps.Keys(lacking)) {
		tools := clip.Some(lacking[why])
		w.note("tools are not ready and hidden from clients", why+": "+tools, "reason", why, "tools", tools)
	}
}

// noteTurns logs the policies that count per turn, because MCP has no turns.
func (g *Gateway) noteTurns() {
	for _, obj := range g.reg.Objects() {
		var rules *v1.ToolPolicySpec
		switch m := obj.(type) {
		case *v1.ToolPolicy:
			rules = &m.Spec
		case *v1.Prompt:
			rules = m.Spec.Policy
		}
		if rules != nil && countsTurns(rules) {
			g.log.Info("MCP has no turns: a session's unnamed turn ends after some time without calls", "kind", obj.Head().Kind,
				"policy", obj.Head().Metadata.Name, "namespace", obj.Head().Namespace(), "turn_idle", clip.Duration(cmp.Or(g.opts.Server.TurnIdle, server.DefaultTurnIdle)))
		}
	}
}

func countsTurns(s *v1.ToolPolicySpec) bool {
	return s.MaxToolCallsPerTurn != nil || slices.ContainsFunc(s.Limits, func(l v1.Limit) bool { return l.Per == v1.PerTurn })
}
