package gateway

import (
	"errors"
	"fmt"
	"io/fs"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/lock"
	"toolctl.dev/toolctl/pkg/mcp"
)

// Definition is what a server said of a tool, as a lock holds it.
func Definition(t mcp.DiscoveredTool) lock.Definition {
	return lock.Definition{Name: t.Remote, Title: t.Title, Description: t.Description, Annotations: t.Annotations, InputSchema: t.InputSchema, OutputSchema: t.OutputSchema}
}

// LockServers turns states into what a lock holds, and returns those that are not ready apart.
func LockServers(states []mcp.ServerState) (now []lock.Server, down []mcp.ServerState) {
	for _, s := range states {
		if !s.Ready {
			down = append(down, s)
			continue
		}
		entry := lock.Server{Key: s.Key, Name: s.ServerName, Version: s.ServerVersion, ProtocolVersion: s.ProtocolVersion}
		for _, t := range s.Tools {
			if entry.Tool(t.Remote) == nil { // a name that is given twice is a problem of the second
				entry.Tools = append(entry.Tools, lock.Of(Definition(t)))
			}
		}
		now = append(now, entry)
	}
	return now, down
}

func (s *serverSet) compare(server v1.Key, t mcp.DiscoveredTool) error {
	if s.lockErr != nil {
		return s.lockErr
	}
	return s.lock.Check(server, Definition(t))
}

// refuseAll refuses the declared tools of a server: what cannot be compared is not called.
func (u *servers) refuseAll(server v1.Key, err error) map[string]error {
	refused := map[string]error{}
	for _, o := range u.reg.Objects() {
		if t, ok := o.(*v1.Tool); ok {
			if k, bound := ServerOf(t); bound && k == server {
				refused[t.RemoteName()] = err
			}
		}
	}
	return refused
}

// ServerOf returns the MCP server that a tool is of; false for a tool of another mode.
func ServerOf(t *v1.Tool) (server v1.Key, ok bool) {
	if t.Mode() != v1.ModeMCP || t.Spec.MCP == nil {
		return v1.Key{}, false
	}
	return v1.Key{Kind: v1.KindMCPServer, Namespace: t.Namespace(), Name: t.Spec.MCP.Server}, true
}

// readLock reads the lock that calls are held to.
func readLock(named string) (lock.File, error) {
	path, err := lock.Find(named)
	if err != nil {
		return lock.File{}, err
	}
	f, err := lock.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("there is no %s here or above: make one with 'toolctl lock'", lock.Name)
		if named != "" {
			err = fmt.Errorf("there is no %s: make it with 'toolctl lock --lock-file %s'", named, named)
		}
	}
	return f, err
}
