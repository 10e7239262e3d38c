package action

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/lock"
	"toolctl.dev/toolctl/pkg/mcp"
)

// Lock pins the tool definitions of MCP servers.
type Lock struct {
	*Config
	// Names are the servers. Default: all servers that match Selector.
	Names    []string
	Selector string
	// Update accepts the present definitions of the servers; Check changes nothing.
	Update, Check bool
}

// Locked is the result of a [Lock].
type Locked struct {
	// Path is the lock file, and File its new content; with Check, the present definitions of the servers.
	Path string
	File lock.File
	// Added are the servers added to the lock, Removed those removed from it.
	Added, Removed []v1.Key
	// Drift are the differences from the lock that were not accepted.
	Drift []lock.Drift
	// Down are the servers that did not answer.
	Down []mcp.ServerState
}

// Run queries the servers, and writes or checks the lock.
func (l *Lock) Run(ctx context.Context) (*Locked, error) {
	if l.Update && l.Check {
		return nil, usagef("--update and --check cannot be used together")
	}
	if len(l.Names) > 0 && l.Selector != "" {
		return nil, usagef("names cannot be used together with -l")
	}
	path, err := lock.Find(l.Gateway.LockFile)
	if err != nil {
		return nil, err
	}
	old, err := lock.Read(path)
	fresh := errors.Is(err, fs.ErrNotExist)
	repaired := l.Update && len(l.Names) == 0 // the whole file is rewritten
	if err != nil && (!fresh || l.Check) && !repaired {
		if fresh {
			return nil, usagef("there is no %s: create it with 'toolctl lock'", path)
		}
		return nil, v1.NewValidationError(v1.ManifestInvalid, "", []v1.Violation{{Message: err.Error(), Expected: "a lock file", Got: "something else"}})
	}
	r := &Locked{Path: path}
	return r, l.within(ctx, func(w *Workspace) (err error) {
		keys, gone, err := l.servers(w, &old)
		if err != nil {
			return err
		}
		var now []lock.Server
		if len(keys) > 0 {
			now, r.Down = LockServers(w.ask(ctx, keys...))
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if l.Check {
			r.File.Servers, r.Drift = now, old.Drift(now)
			return nil
		}
		r.File, r.Drift, r.Added = old.Merge(now, gone, l.Update)
		r.Removed = gone
		if len(r.Added) > 0 || len(gone) > 0 || fresh || l.Update {
			err = lock.Write(path, r.File)
		}
		return err
	})
}

// servers returns the named servers, or all servers without Names. gone are the named servers that only the lock has.
func (l *Lock) servers(w *Workspace, old *lock.File) (keys, gone []v1.Key, err error) {
	if len(l.Names) == 0 {
		has, err := Labeled(l.Selector)
		if err != nil {
			return nil, nil, err
		}
		for _, k := range w.Servers(l.Namespace) {
			if it, err := w.Registry.Get(k.Kind, k.Namespace, k.Name); err == nil && has(it.Object) {
				keys = append(keys, k)
			}
		}
		if len(keys) == 0 && l.Selector != "" {
			return nil, nil, usagef("no MCPServer with the labels %s", l.Selector)
		}
		if len(keys) == 0 {
			return nil, nil, usagef("there is no MCPServer manifest to lock")
		}
		return keys, nil, nil
	}
	for _, name := range l.Names {
		it, err := w.Registry.Get(v1.KindMCPServer, l.Namespace, strings.TrimPrefix(name, "mcpserver/"))
		if err == nil {
			if it.Object.Head().Broken() {
				return nil, nil, v1.NewValidationError(v1.ManifestInvalid, "", it.Reasons)
			}
			keys = append(keys, it.Object.Head().Key())
			continue
		}
		k := l.keyNamed(v1.KindMCPServer, name)
		if !l.Update || old.Server(k) == nil {
			return nil, nil, err
		}
		gone = append(gone, k)
	}
	return keys, gone, nil
}

// LockServers converts states into entries of a lock, and separately returns the servers that are not ready.
func LockServers(states []mcp.ServerState) (now []lock.Server, down []mcp.ServerState) {
	for _, s := range states {
		if !s.Ready {
			down = append(down, s)
			continue
		}
		entry := lock.Server{Key: s.Key, Name: s.ServerName, Version: s.ServerVersion, ProtocolVersion: s.ProtocolVersion}
		for _, t := range s.Tools {
			if entry.Tool(t.Remote) == nil { // a second tool with the same name is a problem of the server
				entry.Tools = append(entry.Tools, lock.Of(gateway.Definition(t)))
			}
		}
		now = append(now, entry)
	}
	return now, down
}
