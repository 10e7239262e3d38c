package gateway

import (
	"context"
	"io/fs"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/registry"
)

// Source is where manifests are.
type Source interface {
	// Load reads them. What is wrong in a manifest is a violation of the set; an error says
	// that there is nothing to read.
	Load(ctx context.Context) (*manifest.Set, error)
	// Watch returns a channel that gets a value after what Load reads may have changed, one
	// for changes that come together, and that is closed once ctx has ended and nothing of the
	// watch is left. It is nil when there are no changes to tell of. An error says that
	// changes cannot be followed; missed is told why some may not be seen.
	Watch(ctx context.Context, missed func(error)) (<-chan struct{}, error)
}

// extended returns the source with what the executors and rules of the options add to
// manifests. [FS] and [Files] know it from here; other sources read as they do.
func (o *Options) extended() (Source, error) {
	extensions, err := registry.Extensions(o.Executors, o.Rules)
	if s, ok := o.Source.(interface {
		extend([]v1.Extension) Source
	}); ok && len(extensions) > 0 {
		return s.extend(extensions), err
	}
	return o.Source, err
}

// FS is the manifests of a folder that fsys is, such as an [embed.FS]. Changes are not followed.
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
	default: // one reload sees both
	}
}
