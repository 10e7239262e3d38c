package main

import (
	v1 "toolctl.dev/toolctl/api/v1"
)

// undecidable says of a call that waits that nobody can approve it, when no store keeps
// it for another terminal.
func (c *catalog) undecidable(res v1.Result) v1.Result {
	if res.Status == v1.StatusPending && res.Pending != nil && c.w.store == nil {
		p := *res.Pending
		p.ID, p.ExpiresAt = "", nil
		p.Message += ", which nobody can give: the client cannot ask for it, and the server was started without a store"
		res.Pending = &p
	}
	return res
}

// warnApprovals logs that calls which need approval cannot be approved elsewhere.
func (a *app) warnApprovals(w *workspace) {
	if w.store != nil {
		return
	}
	for _, o := range w.reg.Objects() {
		if p, ok := o.(*v1.ToolPolicy); ok && len(p.Spec.RequireApproval) > 0 && p.Spec.Mode != v1.PolicyAudit {
			a.log.Warn("calls that need approval can be approved by clients that can ask, and by nobody else: name a store with --store", "policy", p.Metadata.Name, "namespace", p.Namespace())
			return
		}
	}
}
