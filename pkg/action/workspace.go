package action

import (
	"context"
	"errors"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/search/embedding"
	"toolctl.dev/toolctl/pkg/store"
)

// Workspace is a gateway over the files of a [Config], or over its store.
type Workspace struct {
	*gateway.Gateway
	Registry *registry.Registry
	// Store is the store; nil if the workspace has no store.
	Store store.Store
	// Source is the source of the manifests.
	Source gateway.Source
	// LockFile is the lock file of the options.
	LockFile string
	// OfFiles reports whether the manifests are files, so that Store does not have them.
	OfFiles bool

	config     *Config
	embeddings *embedding.Embedder // nil without Embeddings of the config
}

// Open opens the workspace. Changes may add to the options of its gateway.
func (c *Config) Open(ctx context.Context, changes ...func(*gateway.Options)) (_ *Workspace, err error) {
	o, err := c.reaching()
	if err != nil {
		return nil, err
	}
	w := &Workspace{OfFiles: len(c.Files) > 0 || o.Source != nil, config: c}
	defer func() {
		if err != nil && w.Store != nil {
			err = errors.Join(err, w.Store.Close())
		}
	}()
	if !w.OfFiles || c.DSN != "" {
		if w.Store, err = c.OpenStore(ctx, w.OfFiles); err != nil {
			return nil, err
		}
		o.Store = w.Store
	}
	if w.embeddings, err = c.embedder(w.Store, o.Logger); err != nil {
		return nil, err
	}
	o.Embeddings = w.embeddings
	if w.OfFiles || !store.Shared(w.Store) {
		o.Permit = o.Permit.Own()
	}
	if o.Source == nil {
		o.Source = c.source(w.Store)
	}
	for _, change := range changes {
		change(&o)
	}
	w.Source, w.LockFile = o.Source, o.LockFile
	if w.Gateway, err = gateway.Open(ctx, o); err != nil {
		return nil, err
	}
	w.Registry = w.Gateway.Registry()
	return w, nil
}

// within opens the workspace for do and closes it.
func (c *Config) within(ctx context.Context, do func(*Workspace) error, changes ...func(*gateway.Options)) error {
	w, err := c.Open(ctx, changes...)
	if err != nil {
		return err
	}
	if c.Opened != nil {
		c.Opened(w)
	}
	return errors.Join(do(w), w.Close())
}

// ask queries MCP servers, by default all of the namespace, and passes their answers to Asked of the [Config].
func (w *Workspace) ask(ctx context.Context, keys ...v1.Key) []mcp.ServerState {
	if len(keys) == 0 {
		if keys = w.Servers(w.config.Namespace); len(keys) == 0 {
			return nil
		}
	}
	states := w.Discover(ctx, keys...)
	if w.config.Asked != nil {
		w.config.Asked(states)
	}
	return states
}

func (c *Config) source(s store.Store) gateway.Source {
	if len(c.Files) == 0 {
		return gateway.Stored(s, c.Layout)
	}
	o := c.manifests()
	o.Layout = c.Layout
	return files{gateway.Files(o, c.Files...), c.Files}
}

// files is the source of the files in the options. Missing files, pipes, devices and sockets are wrong usage.
type files struct {
	gateway.Source
	paths []string
}

func (f files) Load(ctx context.Context) (*manifest.Set, error) {
	if err := Regular(f.paths); err != nil {
		return nil, err
	}
	set, err := f.Source.Load(ctx)
	if err != nil {
		err = &UsageError{err}
	}
	return set, err
}

// Close closes the gateway and the store.
func (w *Workspace) Close() error {
	err := w.Gateway.Close()
	if w.Store != nil {
		err = errors.Join(err, w.Store.Close())
	}
	return err
}

// Kept returns the store that has the manifests; nil if the manifests are files.
func (w *Workspace) Kept() store.Store {
	if w.OfFiles {
		return nil
	}
	return w.Store
}
