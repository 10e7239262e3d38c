package v1

// Kinds of [Effect].
const (
	EffectHTTP    = "http"
	EffectMCP     = "mcp"
	EffectFile    = "file"
	EffectProcess = "process"
)

// Effect is one thing outside this process that a call did or may have done. The executors fill http and mcp; a tool
// made in Go may return any. It contains no secrets and no arguments.
type Effect struct {
	// Kind is "http", "mcp", "file" or "process"; it says which other fields are set.
	Kind string `json:"kind"`
	// Method, URL and Host are of the HTTP request: URL as the manifest has it, with its
	// ${VAR} and {{.arg}} and without user and query, and Host where it was sent to.
	Method string `json:"method,omitempty"`
	URL    string `json:"url,omitempty"`
	Host   string `json:"host,omitempty"`
	// HTTPStatus is the status of the last response; 0 when none came.
	HTTPStatus int `json:"http_status,omitempty"`
	// Server and Tool are the MCP server's namespace/name, and the tool's name there.
	Server string `json:"server,omitempty"`
	Tool   string `json:"tool,omitempty"`
	// Path and Operation are of a file: read, write or delete.
	Path      string `json:"path,omitempty"`
	Operation string `json:"operation,omitempty"`
	// Command is the program that was started, without its arguments.
	Command string `json:"command,omitempty"`
}
