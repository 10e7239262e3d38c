package gateway

import (
	"net/http"

	"toolctl.dev/toolctl/pkg/mcp/server"
	"toolctl.dev/toolctl/pkg/store"
)

type (
	// Access tells a handler of [Gateway.Mount] who sends a request.
	Access = server.Access
	// Caller is who sends a request.
	Caller = server.Caller
	// AccessError says why a request is not let in.
	AccessError = server.AccessError
)

// Mount serves a handler besides /mcp, by its pattern, such as "/ui/": see
// [server.HTTPOptions]. It must come before Handler and Serve.
func (g *Gateway) Mount(pattern string, handler func(Access) http.Handler) {
	if g.http.Mounts == nil {
		g.http.Mounts = map[string]func(Access) http.Handler{}
	}
	g.http.Mounts[pattern] = handler
}

// DecideAt says that calls which wait for approval are decided on at an address followed by
// their id, which clients are then told of. It must come before anything is served.
func (g *Gateway) DecideAt(address string) { g.decided.Store(&address) }

// Approvals are the calls that wait for approval: those of the store, or of the gateway
// without one.
func (g *Gateway) Approvals() store.Approvals { return g.approvals }
