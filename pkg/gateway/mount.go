package gateway

import (
	"slices"

	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/mcp/server"
	"toolctl.dev/toolctl/pkg/store"
)

// Mount serves routes besides /mcp: see [server.HTTPOptions]. It must come before Handler and Serve.
func (g *Gateway) Mount(routes func(server.Access) []admission.Route) {
	g.http.Mounts = append(slices.Clip(g.http.Mounts), routes)
}

// Admission holds what is served to the limits of the options. Other entrances of the program must pass it too.
func (g *Gateway) Admission() *admission.Admission { return g.admission }

// DecideAt says that calls which wait for approval are decided on at an address followed by
// their id, which clients are then told of. It must come before anything is served.
func (g *Gateway) DecideAt(address string) { g.decided.Store(&address) }

// Approvals are the calls that wait for approval: those of the store, or of the gateway
// without one.
func (g *Gateway) Approvals() store.Approvals { return g.approvals }
