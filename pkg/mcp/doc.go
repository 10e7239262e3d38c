// Package mcp is toolctl's side of the Model Context Protocol.
//
// [Upstreams] holds the sessions to the servers that MCPServer manifests
// declare: child processes that speak over stdio, and URLs.
//
//	up := mcp.NewUpstreams(servers, mcp.Options{})
//	defer up.Close()
//	for _, s := range up.Discover(ctx) {
//		fmt.Println(s.Key.Name, s.Ready, len(s.Tools))
//	}
//	res, err := up.Call(ctx, key, "read_file", []byte(`{"path":"a.txt"}`), false)
//
// # Lazy
//
// [NewUpstreams] starts nothing. A server starts when it is first asked, all
// calls share its one session, and a session that was lost is opened again by
// the next call. A server that fails again and again is left alone for a time
// that doubles up to half a minute; calls to it fail at once meanwhile.
//
// # Untrusted
//
// What a server says is foreign. Messages, pages, tools and bytes are bounded;
// a tool whose name or schema is broken is listed with its problem and hides no
// other; one server that hangs, floods or dies stops no other. A child process
// gets PATH, HOME and what its manifest names, in a process group of its own
// that ends with toolctl. A URL that leads to a private address is not dialled
// unless its manifest says so, and credentials go to the URL's own origin only.
//
// # Errors
//
// A server that cannot be reached, or is lost during a call, is a [v1.MCPError]
// with code 0; one that answers with a JSON-RPC error is a [v1.MCPError] with
// that code; a tool that reports failure is a result with status "failed" and a
// [v1.ExecutionError]; a manifest that names an unset variable is a
// [v1.ValidationError]. None of them holds the value of a variable.
//
// The types of the MCP SDK do not leave this package.
package mcp
