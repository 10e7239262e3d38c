// Package gateway combines the parts of a running program: the source of the manifests, the
// registry, the sessions to MCP servers, the store, and one MCP server in front of them.
//
//	g, err := gateway.Open(ctx, gateway.Options{Source: gateway.Files(manifest.Options{}, "manifests/")})
//	if err != nil {
//		return err
//	}
//	defer g.Close()
//	res, err := g.Call(ctx, v1.Call{Tool: "get-weather", Args: json.RawMessage(`{"location":"Oslo"}`)})
//	err = http.ListenAndServe("127.0.0.1:8080", g.Handler())
//
// # Violations
//
// A manifest with a violation does not affect others: its object is listed as not ready, and
// [Gateway.Violations] says why. If a set that is loaded later, by [Gateway.Reload] or
// [Options.Watch], has a violation, it is ignored and the previous set stays in use.
//
// # MCP servers
//
// A server is queried when something first needs it, and all servers are queried once the
// gateway serves. A server that is slow or down delays only its own tools, but no other
// calls and no reload.
//
// # Storage
//
// Without a [store.Store] counts, approvals and overrides live as long as the gateway, and
// there is no audit log.
package gateway
