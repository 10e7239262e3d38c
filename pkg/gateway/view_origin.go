package gateway

import (
	"context"
	"errors"
	"io/fs"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/lock"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/source"
	"toolctl.dev/toolctl/pkg/store"
)

// Origin is the origin of a tool. Fields that do not apply are empty.
type Origin struct {
	// Source is the position of its manifest, and Commit the commit of the manifest.
	Source v1.Source
	Commit string
	// Set is the set that the tool belongs to in the store, and Revision the last revision with the tool.
	Set      string
	Revision int64
	// Server is the MCP server that offers the tool, and Remote its name there.
	Server v1.Key
	Remote string
	// Lock describes how the server's tool compares with the lock; Drifted says that it differs.
	Lock    string
	Drifted bool
}

// Origin returns the origin of one of Tools.
func (v View) Origin(ctx context.Context, it registry.Item) (Origin, error) {
	g, t := v.g, it.Tool()
	o := Origin{Source: t.Head().Source, Server: it.Server}
	if server, ok := t.Server(); ok {
		o.Server = server
	}
	if o.Server.Name != "" {
		o.Remote = t.RemoteName()
		o.Lock, o.Drifted = g.lockState(o.Server, o.Remote)
	}
	if it.Server.Name != "" { // a discovered tool has no manifest
		return o, nil
	}
	if p := g.Pulled(); p != nil {
		o.Commit = p.Revision
		return o, nil
	}
	if _, ok := g.opts.Source.(*stored); !ok {
		if o.Source.File != "" {
			o.Commit = source.Commit(ctx, []string{o.Source.File}, []v1.Object{t})
		}
		return o, nil
	}
	rec, err := g.opts.Store.Get(ctx, t.Key())
	if missing := new(v1.NotFoundError); errors.As(err, &missing) { // deleted in the meantime
		return o, nil
	}
	if err != nil || rec.Set == "" {
		return o, err
	}
	newest, err := g.opts.Store.Revisions(ctx, store.RevisionQuery{Set: rec.Set, Newest: true})
	if err != nil || len(newest) == 0 {
		return o, err
	}
	o.Set = rec.Set
	o.Revision, o.Commit = newest[0].Of(t.Key())
	return o, nil
}

// lockState compares a tool of a server with the lock.
func (g *Gateway) lockState(server v1.Key, remote string) (text string, drifted bool) {
	path, err := lock.Find(g.opts.LockFile)
	if err != nil {
		return err.Error(), true
	}
	f, err := lock.Read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "not pinned: there is no toolctl.lock", false
	case err != nil:
		return err.Error(), true
	}
	if s := f.Server(server); s == nil || s.Tool(remote) == nil {
		return "not pinned in " + path, false
	}
	state, ok := g.servers.State(server)
	if !ok || !state.Ready {
		return "pinned in " + path + "; the server was not queried", false
	}
	for _, d := range state.Tools {
		if d.Remote == remote {
			if err := f.Check(server, Definition(d)); err != nil {
				return err.Error(), true
			}
			return "as pinned in " + path, false
		}
	}
	return "pinned in " + path + "; the server no longer offers it", true
}
