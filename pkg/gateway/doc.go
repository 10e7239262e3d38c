// Package gateway opens manifests as one running whole: where they come from, the
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
// A manifest with a violation hides nothing else: its object is listed as not ready, and
// [Gateway.Violations] says why. A set that is loaded later, by [Gateway.Reload] or because of
// [Options.Watch], changes nothing when it has a violation: the one before it is served on.
//
// # MCP servers
//
// A server is asked what it offers when something first needs it, and all are once the
// gateway serves. One that is slow or down holds up nothing but its own tools: no call of
// another tool waits for it, and no reload.
//
// # What is kept
//
// Without a [store.Store] counts, approvals and overrides live as long as the gateway, and
// there is no audit.
package gateway
