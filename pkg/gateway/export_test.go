package gateway

import v1 "toolctl.dev/toolctl/api/v1"

// ServersNamed returns the MCP servers whose name is a prefix of the name of a tool or prompt.
func (g *Gateway) ServersNamed(namespace, name string) []v1.Key {
	return g.servers.named(namespace, name)
}
