package gateway

import (
	"context"
	"io/fs"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/registry"
)

// Source is a source of manifests.
type Source interface {
	// Load reads the manifests. Errors in a manifest are violations of the set; Load returns an error if nothing can be
	// read.
	Load(ctx context.Context) (*manifest.Set, error)
	// Watch returns a channel that receives a value after the result of Load may have changed, one for changes that
	// come together. The channel is closed after ctx has ended and the watch has stopped, and is nil if the source
	// never changes. Watch returns an error if changes cannot be followed, and calls missed if some changes may go
	// unnoticed.
	Watch(ctx context.Context, missed func(error)) (<-chan struct{}, error)
}

// extended returns the source with the manifest extensions by the executors and rules of the options. Only [FS] and
// [Files] support them; other sources are unchanged.
func (o *Options) extended() (Source, error) {
	extensions, err := registry.Extensions(o.Executors, o.Rules)
	if s, ok := o.Source.(interface {
		extend([]v1.Extension) Source
	}); ok && len(extensions) > 0 {
		return s.extend(extensions), err
	}
	return o.Source, err
}

// FS is a source of manifests in a file system, such as an [embed.FS]. Changes are not followed.
func FS(fsys fs.FS, o manifest.Options) Source { return folder{fsys, o} }

type folder struct {
	fs.FS
	opts manifest.Options
}

func (f folder) extend(x []v1.Extension) Source {
	f.opts.Extensions = append(x, f.opts.Extensions...)
	return f
}

func (f folder) Load(ctx context.Context) (*manifest.Set, error) {
	return manifest.LoadFS(ctx, f.FS, f.opts)
}

func (folder) Watch(context.Context, func(error)) (<-chan struct{}, error) { return nil, nil }

// changes is the channel of a watch.
type changes chan struct{}

func newChanges() changes { return make(changes, 1) }

func (c changes) signal() {
	select {
	case c <- struct{}{}:
	default: // one reload sees both changes
	}
}
