package gateway

import (
	"context"
	"errors"
	"sync"
)

// Group is gateways that are closed together, such as those of scenarios that are played
// side by side. The zero value is empty. Open may be called by many goroutines at once.
type Group struct {
	mu  sync.Mutex
	all []*Gateway
}

// Open opens one more gateway.
func (p *Group) Open(ctx context.Context, o Options) (*Gateway, error) {
	g, err := Open(ctx, o)
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
