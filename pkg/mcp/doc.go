// Package mcp is the MCP client of toolctl.
//
// [Upstreams] holds the sessions to the servers that MCPServer manifests declare: child processes over
// stdio, and URLs.
//
//	up := mcp.NewUpstreams(servers, mcp.Options{})
//	defer up.Close()
//	for _, s := range up.Discover(ctx) {
//		fmt.Println(s.Key.Name, s.Ready, len(s.Tools))
//	}
//	res, err := up.Call(ctx, key, "read_file", []byte(`{"path":"a.txt"}`), false)
//
// # Lazy start
//
// [NewUpstreams] starts no server. A server starts on its first request, all calls share its session, and
// the next call opens a lost session again. After repeated failures a server is not started again for a
// time that doubles up to half a minute. Until then, calls to it fail at once.
//
// # Untrusted servers
//
// Servers are not trusted. Messages, pages, tools and bytes are limited. A tool with an invalid name or
// schema is listed with its problem and does not affect other tools. A server that hangs, floods or dies
// does not affect other servers. A child process gets PATH, HOME and the variables that its manifest names,
// and runs in its own process group, which ends with toolctl. A private address is not dialled unless the
// manifest allows it, and credentials go only to the origin of the URL.
//
// # Errors
//
// A server that cannot be reached, or is lost during a call, is a [v1.MCPError] with code 0. A JSON-RPC
// error of a server is a [v1.MCPError] with that code. A tool that reports failure is a result with status
// "failed" and a [v1.ExecutionError]. A manifest that names an unset variable is a [v1.ValidationError]. No
// error contains the value of a variable.
//
// The types of the MCP SDK do not leave this package.
package mcp
