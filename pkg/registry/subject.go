package registry

import (
	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/policy"
)

// subject returns a tool as a subject of policies.
func (o *origin) subject(t *v1.Tool) policy.Subject {
	sub := policy.Subject{Namespace: t.Namespace(), Name: t.Metadata.Name, Labels: t.Metadata.Labels, Discovered: o.server != (v1.Key{}), Bare: o.bare}
	sub.Server, sub.Remote = Binding(t)
	if o.calls != nil {
		sub.ServerLabels = o.calls.Metadata.Labels
	}
	return sub
}

// Binding returns the MCPServer that a tool calls and the name of the tool there. Both are empty for a tool that calls
// no server.
func Binding(t *v1.Tool) (server, remote string) {
	if !callsServer(t) {
		return "", ""
	}
	return t.Spec.MCP.Server, t.RemoteName()
}

func callsServer(t *v1.Tool) bool { return t.Spec.MCP != nil && t.Mode() == v1.ModeMCP }

// bareNames maps a namespace and a tool name without its server to the server that the name stands for, or to ambiguous
// if the name has several meanings.
type bareNames map[[2]string]string

const ambiguous = "\x00"

func newBareNames(objects []v1.Object, found map[v1.Key]*Discovery) bareNames {
	b := bareNames{}
	for _, o := range objects {
		if t, ok := o.(*v1.Tool); ok {
			b.addTool(t)
		}
	}
	for _, d := range found {
		for _, t := range d.Tools {
			b.addTool(t)
		}
	}
	return b
}

func (b bareNames) addTool(t *v1.Tool) {
	if !callsServer(t) {
		b.claim(t, t.Metadata.Name, ambiguous)
		return
	}
	remote := t.RemoteName()
	if t.Metadata.Name != remote {
		b.claim(t, t.Metadata.Name, ambiguous)
	}
	b.claim(t, remote, t.Spec.MCP.Server)
}

func (b bareNames) claim(t *v1.Tool, name, server string) {
	key := [2]string{t.Namespace(), name}
	if was, ok := b[key]; ok && was != server {
		server = ambiguous
	}
	b[key] = server
}

func (b bareNames) reaches(t *v1.Tool) bool {
	return b[[2]string{t.Namespace(), t.RemoteName()}] == t.Spec.MCP.Server
}
