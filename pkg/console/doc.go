// Package console serves a web console for a gateway: its tools with forms to call them, pending approvals, recent
// calls, and a JSON API for all of these.
//
//	c := console.New(console.Options{Login: "ann"})
//	o := gateway.Options{Source: source, OnCall: c.Called, OnPending: c.Waits}
//	g, err := gateway.Open(ctx, o)
//	...
//	c.Attach(g)
//	defer c.Close()
//	err = http.ListenAndServe("127.0.0.1:8080", g.Handler())
//
// # Who sees what
//
// If /mcp requires tokens, people sign in with a token and act as its principal: policies that match principals decide
// what they see, call and approve. People see their own calls, and Options.Operators see all calls. Otherwise the only
// way in is the link of [Console.Link], which works once and identifies the person at this machine. Calls of that
// person have no principal, as on a command line, and decisions of that person carry the name Options.Login.
//
// # Scripts
//
// The server renders the pages, which work without JavaScript except for live updates. The content security policy
// allows only the scripts of this package, and text from tools and models is always escaped.
package console
