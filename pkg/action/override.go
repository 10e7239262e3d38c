package action

import (
	"context"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

// OverrideTool finds the tool of a store that a name means, for an override. One that only
// an MCP server offers is taken by the name of its server: no server is started for it.
func OverrideTool(ctx context.Context, s store.Objects, namespace, name string) (v1.Key, error) {
	reg, err := namesOf(ctx, s)
	if err != nil {
		return v1.Key{}, err
	}
	it, err := reg.Get(v1.KindTool, namespace, name)
	if err == nil {
		return it.Object.Head().Key(), nil
	}
	ns, local, whole := strings.Cut(name, "/")
	if !whole {
		ns, local = namespace, name
	}
	local = strings.TrimPrefix(local, v1.MCPPrefix)
	if server, _, ok := strings.Cut(local, "__"); ok {
		if found, serr := reg.Get(v1.KindMCPServer, ns, server); serr == nil {
			return v1.Key{Kind: v1.KindTool, Namespace: found.Object.Head().Namespace(), Name: local}, nil
		}
	}
	return v1.Key{}, err
}
