package executors

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Upstream calls tools of MCP servers. With it, this package need not import the package that implements MCP.
type Upstream interface {
	// Call calls tool, by its name on the server, and returns its result. With retry, a
	// call may be repeated after a lost connection. A tool that reports failure is a
	// result with status "failed" and a [v1.ExecutionError]; a server that cannot be
	// reached, or that refuses the call, is a [v1.MCPError].
	Call(ctx context.Context, server v1.Key, tool string, args json.RawMessage, retry bool) (v1.Result, error)
}

// environment is an [Upstream] that reports the unset variables of a server.
type environment interface {
	Unset(server v1.Key) []v1.Violation
}

// mcp passes calls of tools with mode mcp to their server.
type mcp struct{ upstream Upstream }

// Name returns "mcp".
func (mcp) Name() string { return v1.ModeMCP }

// Unset returns a violation for each unset variable of an MCPServer, or of the MCPServer of a
// Tool.
func (m mcp) Unset(o v1.Object) []v1.Violation {
	env, ok := m.upstream.(environment)
	if !ok {
		return nil
	}
	t, ok := o.(*v1.Tool)
	switch {
	case !ok:
		return env.Unset(o.Head().Key())
	case t.Spec.MCP == nil:
		return nil
	}
	unset := env.Unset(serverOf(t))
	for i := range unset { // the violations are about a field of the server
		unset[i].Message = "mcpserver/" + t.Spec.MCP.Server + ": " + v1.FieldPath(unset[i].Path) + ": " + unset[i].Message
		unset[i].Path = ""
	}
	return unset
}

func serverOf(t *v1.Tool) v1.Key {
	return v1.Key{Kind: v1.KindMCPServer, Namespace: t.Namespace(), Name: t.Spec.MCP.Server}
}

// Execute calls the tool of spec.mcp on a server in the tool's own namespace. A call that
// was lost may have had an effect, so it is repeated only if the hints of the tool allow
// it.
func (m mcp) Execute(ctx context.Context, tool *v1.Tool, args json.RawMessage) (v1.Result, error) {
	bind := tool.Spec.MCP
	if bind == nil {
		return v1.Result{}, &v1.ExecutionError{Tool: tool.Metadata.Name, Phase: v1.PhaseValidate, Message: "mode mcp needs spec.mcp"}
	}
	server := serverOf(tool)
	remote := cmp.Or(bind.Tool, tool.Metadata.Name)
	res, err := m.upstream.Call(ctx, server, remote, args, tool.Spec.Hints.Retryable())
	if res.Attempts > 0 {
		res.Effects = []v1.Effect{{Kind: v1.EffectMCP, Server: server.Namespace + "/" + server.Name, Tool: remote}}
	}
	if failed, ok := errors.AsType[*v1.ExecutionError](err); ok { // use the name that the tool has in the registry
		named := *failed
		named.Tool = tool.Metadata.Name
		return res, &named
	}
	return res, err
}
