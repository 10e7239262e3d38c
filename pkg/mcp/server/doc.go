// Package server serves a catalog of tools, prompts and resources as one MCP
// server, over stdio and streamable HTTP.
//
//	s := server.New(catalog, server.Options{Name: "toolctl", Version: "1.0.0"})
//	err := s.ServeStdio(ctx, os.Stdin, os.Stdout)
//	err := s.ListenAndServe(ctx, "127.0.0.1:8080", server.HTTPOptions{})
//
// # Two versions, one endpoint
//
// Clients of MCP 2025-11-25 and older open a session with initialize; those of
// 2026-07-28 send each request on its own. Over HTTP both are served at one
// address, by one table of methods.
//
// A request over HTTP is answered as one JSON document when the answer comes first, and
// as a stream once a message for the client comes before it.
//
// # Prompts and resources
//
// Those of manifests, and those of MCP servers, which are asked by their own names and
// addresses. See [Contents].
//
// # Names
//
// A client sees names of letters, digits, "_" and "-", at most 64. See [Offer].
//
// # Sessions
//
// The session of a call is what policies count in: the MCP session; the process,
// over stdio; and for a client without a session its principal, with the text of
// _meta "toolctl.dev/session" when it gives one. Clients without session and
// principal share one session for as long as the server runs. _meta
// "toolctl.dev/turn" names the turn of a call. MCP knows no turns: the turn of calls that
// name none ends once their session had none under way for Options.TurnIdle.
//
// # Errors
//
// A call of a tool that is not there is the JSON-RPC error -32602. Everything else
// that is wrong with a call is a result with isError, whose text says what to do:
// the violations of the arguments, or the rule that refused, its limit and its count.
//
// The types of the MCP SDK do not leave this package.
package server
