// Package console is web pages over a gateway: its tools and forms to try them, the calls
// that wait for approval, the calls that happen, and a JSON API for all of that.
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
// Where /mcp asks for tokens, a person signs in with one, and is its principal from then on:
// policies that match principals decide what is seen, tried and approved. Everybody sees their own
// calls, Options.Operators all. Elsewhere the one
// way in is the link of [Console.Link], which works once and stands for the person at this
// machine: what that person calls has no principal, as on a command line, and what that
// person decides has the name Options.Login.
//
// # Scripts
//
// The pages are made on the server and work without JavaScript, but for what is updated by
// itself. The policy for scripts lets those of this package run and no other, and every text
// of a tool or a model is written as text.
package console
