package gateway

import (
	"encoding/json"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
)

// definitions are what MCP servers said of their tools, by server and by the tool's
// name there. A server is looked up when the first of its tools is.
type definitions struct {
	mcp *mcp.Upstreams
	by  map[v1.Key]map[string]json.RawMessage
}

func newDefinitions(u *mcp.Upstreams) *definitions {
	return &definitions{u, map[v1.Key]map[string]json.RawMessage{}}
}

// of returns the definition behind a tool; none when it is not one of an MCP server,
// or the server did not list it.
func (d *definitions) of(t *v1.Tool) json.RawMessage {
	k, ok := t.Server()
	if !ok {
		return nil
	}
	tools, ok := d.by[k]
	if !ok {
		tools = map[string]json.RawMessage{}
		if state, known := d.mcp.State(k); known {
			for _, tool := range state.Tools {
				tools[tool.Remote] = tool.Definition
			}
		}
		d.by[k] = tools
	}
	return tools[t.RemoteName()]
}
