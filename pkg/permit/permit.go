// Package permit decides, by namespace, what manifests may do on the machine that serves them. It
// applies to manifests with several authors: those of a shared store, and custom resources of a
// Kubernetes cluster. The author of local files can do all of it anyway.
package permit

import (
	"fmt"
	"net/url"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/netaddr"
)

// Rules list the namespaces with a permission; "*" means all. The zero value permits nothing, and nil permits
// everything.
type Rules struct {
	// Exec permits tools that run a program (spec.exec), in a sandbox.
	Exec []string
	// Unsandboxed permits these tools to run without a sandbox (spec.exec.sandbox).
	Unsandboxed []string
	// Command permits MCP servers that run on this machine (spec.command). They have no sandbox.
	Command []string
	// PrivateNetwork permits tools and MCP servers to reach loopback and private addresses
	// (allow_private_network).
	PrivateNetwork []string
}

func permits(namespaces []string, namespace string) bool {
	return slices.Contains(namespaces, "*") || slices.Contains(namespaces, namespace)
}

// Check returns a violation for each missing permission of an object.
func (r *Rules) Check(o v1.Object) (bad []v1.Violation) {
	if r == nil {
		return nil
	}
	h := o.Head()
	need := func(namespaces []string, flag, path, what string) {
		if !permits(namespaces, h.Namespace()) {
			bad = append(bad, v1.Violation{
				Path: path, Source: h.Field(path), Expected: "a permission", Got: "none", Forbidden: true,
				Message: fmt.Sprintf("namespace %q may not %s: allow it with --%s=%s", h.Namespace(), what, flag, h.Namespace()),
			})
		}
	}
	switch o := o.(type) {
	case *v1.Tool:
		if e := o.Spec.Exec; e != nil {
			need(r.Exec, execFlag, "/spec/exec", "run programs")
			if e.Sandbox == v1.SandboxOff {
				need(r.Unsandboxed, unsandboxedFlag, "/spec/exec/sandbox", "run programs without a sandbox")
			}
		}
		if s := o.Spec.HTTP; s != nil && s.AllowPrivateNetwork {
			need(r.PrivateNetwork, PrivateNetworkFlag, "/spec/http/allow_private_network", private)
		}
	case *v1.MCPServer:
		switch asks := o.Spec.AllowPrivateNetwork; {
		case o.Spec.Command != "":
			need(r.Command, commandFlag, "/spec/command", "start MCP servers")
		case asks != nil && *asks:
			need(r.PrivateNetwork, PrivateNetworkFlag, "/spec/allow_private_network", private)
		case asks == nil && atHome(o.Spec.URL):
			need(r.PrivateNetwork, PrivateNetworkFlag, "/spec/url", private)
		}
	}
	return bad
}

const private = "reach loopback and private addresses"

// atHome reports whether a URL names this machine, which needs no allow_private_network.
func atHome(address string) bool {
	u, err := url.Parse(address)
	return err == nil && netaddr.IsLoopbackHost(u.Hostname())
}

// Apply returns objects with a violation for each missing permission, also for the tools of an MCP server without
// permission, which cannot be called. If the need for a permission depends on the machine or on variables, such as on
// whether a sandbox is available, the returned object cannot use it. Apply does not change the given objects.
func (r *Rules) Apply(objects []v1.Object) []v1.Object {
	if r == nil {
		return objects
	}
	out := slices.Clone(objects)
	servers := map[v1.Key][]v1.Violation{}
	for i, o := range objects {
		bad := r.Check(o)
		switch o := o.(type) {
		case *v1.MCPServer:
			if bad != nil {
				servers[o.Key()] = bad
			}
			out[i] = r.server(o, bad)
		case *v1.Tool:
			out[i] = r.tool(o, bad)
		}
	}
	if len(servers) == 0 {
		return out
	}
	for i, o := range out {
		t, ok := o.(*v1.Tool)
		if !ok || t.Mode() != v1.ModeMCP || t.Spec.MCP == nil {
			continue
		}
		bad := servers[v1.Key{Kind: v1.KindMCPServer, Namespace: t.Namespace(), Name: t.Spec.MCP.Server}]
		if bad == nil {
			continue
		}
		of := slices.Clone(bad)
		for j := range of {
			of[j].Path, of[j].Source = "/spec/mcp/server", t.Field("/spec/mcp/server")
			of[j].Message = fmt.Sprintf("mcpserver/%s: %s: %s", t.Spec.MCP.Server, v1.FieldPath(bad[j].Path), bad[j].Message)
		}
		out[i] = r.tool(t, of)
	}
	return out
}

func (r *Rules) server(s *v1.MCPServer, bad []v1.Violation) *v1.MCPServer {
	narrow := s.Spec.AllowPrivateNetwork == nil && s.Spec.Command == "" && !permits(r.PrivateNetwork, s.Namespace())
	if bad == nil && !narrow {
		return s
	}
	served := *s
	served.Violations = append(slices.Clip(s.Violations), bad...)
	if narrow { // ${VAR} may name this machine
		served.Spec.AllowPrivateNetwork = new(bool)
	}
	return &served
}

func (r *Rules) tool(t *v1.Tool, bad []v1.Violation) *v1.Tool {
	e := t.Spec.Exec
	narrow := e != nil && (e.Sandbox == "" || e.Sandbox == v1.SandboxAuto) && !permits(r.Unsandboxed, t.Namespace())
	if bad == nil && !narrow {
		return t
	}
	served := *t
	served.Violations = append(slices.Clip(t.Violations), bad...)
	if narrow {
		boxed := *e
		boxed.Sandbox = v1.SandboxRequired
		served.Spec.Exec = &boxed
	}
	return &served
}
