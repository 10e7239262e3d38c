// Package mcp is the MCP client of toolctl.
//
// [Upstreams] holds the sessions to the servers that MCPServer manifests
// declare: child processes over stdio, and URLs.
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
// [NewUpstreams] starts nothing. A server starts on its first request, all
// calls share its session, and the next call opens a lost session again. After
// repeated failures a server is not started again for a time that doubles up to
// half a minute. Until then, calls to it fail at once.
//
// # Untrusted
//
// Servers are not trusted. Messages, pages, tools and bytes are bounded. A tool
// with a broken name or schema is listed with its problem and hides no other tool.
// A server that hangs, floods or dies stops no other server. A child process
// gets PATH, HOME and the variables that its manifest names, in its own process
// group, which ends with toolctl. A private address is not dialled unless the
// manifest allows it, and credentials go to the origin of the URL only.
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
