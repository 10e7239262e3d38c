// Package server serves a catalog of tools, prompts and resources as one MCP server, over stdio and
// streamable HTTP.
//
//	s := server.New(catalog, server.Options{Name: "toolctl", Version: "1.0.0"})
//	err := s.ServeStdio(ctx, os.Stdin, os.Stdout)
//	err := s.ListenAndServe(ctx, "127.0.0.1:8080", server.HTTPOptions{})
//
// # Two versions, one endpoint
//
// Clients of MCP 2025-11-25 and older open a session with initialize. Clients of 2026-07-28 send each
// request on its own. Over HTTP both use the same address and the same table of methods.
//
// An HTTP response is one JSON document, unless the client gets another message before the result. In that
// case it is a stream.
//
// # Prompts and resources
//
// The server offers the prompts and resources of manifests and of MCP servers. See [Contents].
//
// # Names
//
// Clients see names of at most 64 letters, digits, "_" and "-". See [Offer].
//
// # Sessions
//
// Policies count calls by session: the MCP session, or the process over stdio. For a client without an MCP
// session, the session is its principal, combined with the text of _meta "toolctl.dev/session" if the
// client sends one. Clients without a session and a principal share one session while the server runs.
// _meta "toolctl.dev/turn" names the turn of a call. MCP has no turns, so the turn of calls without that
// name ends when their session has had no running call for Options.TurnIdle.
//
// # Errors
//
// A call of an unknown tool gets the JSON-RPC error -32602. Every other failed call gets a result with
// isError, whose text lists the violations of the arguments, or names the rule that refused the call with
// its limit and its count.
//
// The types of the MCP SDK do not leave this package.
package server
