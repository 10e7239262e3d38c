package gateway

import (
	"context"
	"errors"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/source"
)

// Pulled returns which revision of its source is served; nil when the manifests are not pulled.
func (g *Gateway) Pulled() *source.Status {
	p, ok := g.opts.Source.(pulled)
	if !ok {
		return nil
	}
	s := p.Status()
	return &s
}

// Pending is what the source holds and is not served.
type Pending struct {
	// Revision is that of a source that is pulled; empty for others.
	Revision string
	// Violations keep it from being served.
	Violations []v1.Violation
	// Problem is what else does.
	Problem string
	// Served are the objects that are served, and Read those of the source; nil when nothing could be read.
	Served, Read []v1.Object
}

// PendingChanges reads the source again, and changes nothing.
func (g *Gateway) PendingChanges(ctx context.Context) (*Pending, error) {
	p := &Pending{}
	var set *manifest.Set
	var err error
	if newest, ok := g.opts.Source.(interface {
		Newest(context.Context) (string, *manifest.Set, error)
	}); ok {
		p.Revision, set, err = newest.Newest(ctx)
	} else {
		set, err = g.opts.Source.Load(ctx)
	}
	bad := new(source.RevisionError)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &bad):
		p.Violations = bad.Violations
		if bad.Err != nil {
			p.Problem = bad.Err.Error()
		}
	case err != nil:
		p.Problem = err.Error()
	default:
		p.Violations = g.keepBack(ctx, set)
	}
	if set == nil {
		return p, nil
	}
	g.reload.mu.Lock()
	defer g.reload.mu.Unlock()
	p.Served, p.Read = g.reload.served, set.Objects
	return p, nil
}
