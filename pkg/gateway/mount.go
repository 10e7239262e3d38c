package gateway

import (
	"slices"

	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/mcp/server"
	"toolctl.dev/toolctl/pkg/store"
)

// Mount serves additional routes next to /mcp: see [server.HTTPOptions]. It must be called before Handler and Serve.
func (g *Gateway) Mount(routes func(server.Access) []admission.Route) {
	g.http.Mounts = append(slices.Clip(g.http.Mounts), routes)
}

// Admission enforces the limits of the options. Other entry points of the program must use it too.
func (g *Gateway) Admission() *admission.Admission { return g.admission }

// DecideAt sets the address at which pending calls are decided; the ID of the call is appended to it. Clients get this
// address. DecideAt must be called before anything is served.
func (g *Gateway) DecideAt(address string) { g.decided.Store(&address) }

// Approvals returns the pending calls: those of the store, or those in memory without a store.
func (g *Gateway) Approvals() store.Approvals { return g.approvals }
