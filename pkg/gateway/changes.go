package gateway

import (
	"context"
	"errors"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/source"
)

// Pulled returns the status of the pulled source; nil if the manifests are not pulled.
func (g *Gateway) Pulled() *source.Status {
	p, ok := g.opts.Source.(pulled)
	if !ok {
		return nil
	}
	s := p.Status()
	return &s
}

// Pending describes what the source contains and the gateway does not serve yet.
type Pending struct {
	// Revision is the revision of a pulled source; empty for other sources.
	Revision string
	// Violations are the violations because of which the source is not served.
	Violations []v1.Violation
	// Problem is any other reason why the source is not served.
	Problem string
	// Served are the served objects, and Read the objects in the source; Read is nil if nothing could be read.
	Served, Read []v1.Object
}

// PendingChanges reads the source again without serving it.
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
