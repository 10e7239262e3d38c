package action

import (
	"context"
	"errors"
	"sync"

	"toolctl.dev/toolctl/pkg/gateway"
)

// Group is gateways that are closed together, such as those of scenarios that are played
// side by side. The zero value is empty. Open may be called by many goroutines at once.
type Group struct {
	mu  sync.Mutex
	all []*gateway.Gateway
}

// Open opens one more gateway.
func (p *Group) Open(ctx context.Context, o gateway.Options) (*gateway.Gateway, error) {
	g, err := gateway.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, g)
	return g, nil
}

// Close closes them all.
func (p *Group) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, g := range p.all {
		errs = append(errs, g.Close())
	}
	p.all = nil
	return errors.Join(errs...)
}
