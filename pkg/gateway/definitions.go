package gateway

import (
	"encoding/json"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
)

// definitions are the tool definitions from MCP servers, by server and by the tool's name on the server. They are
// loaded per server, on the first use of one of its tools.
type definitions struct {
	mcp *mcp.Upstreams
	by  map[v1.Key]map[string]json.RawMessage
}

func newDefinitions(u *mcp.Upstreams) *definitions {
	return &definitions{u, map[v1.Key]map[string]json.RawMessage{}}
}

// of returns the definition of a tool from its MCP server. It returns nothing for other tools, or if the server did not
// list the tool.
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
