package gateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"toolctl.dev/toolctl/pkg/source"
	"toolctl.dev/toolctl/pkg/store"
)

// pulled is a source that reports which revision is served, such as [source.Remote].
type pulled interface{ Status() source.Status }

// remember makes a pulled source save the served revision in the store.
func remember(s Source, st store.Store) {
	if p, ok := s.(interface {
		pulled
		Remember(source.Memory)
	}); ok && st != nil {
		p.Remember(servedFrom{st, p.Status().Source})
	}
}

// servedFrom saves the served revision of an address in a lease. All processes that serve the address share the lease,
// and it outlives them.
type servedFrom struct {
	leases  store.Leases
	address string
}

const (
	servedLease   = "source/"
	servedForever = 100 * 365 * 24 * time.Hour
)

// Last implements [source.Memory].
func (s servedFrom) Last(ctx context.Context) (string, error) { return s.hold(ctx) }

// Use implements [source.Memory].
func (s servedFrom) Use(ctx context.Context, revision string) error {
	held, err := s.hold(ctx, store.Lease{Name: servedLease + s.address, Value: revision})
	if err == nil && held != revision {
		err = errors.New("the store has too many leases")
	}
	return err
}

func (s servedFrom) hold(ctx context.Context, leases ...store.Lease) (string, error) {
	all, _, err := s.leases.HoldLeases(ctx, servedLease+s.address, leases, servedForever)
	if i := slices.IndexFunc(all, func(l store.Lease) bool { return l.Name == servedLease+s.address }); i >= 0 {
		return all[i].Value, err
	}
	return "", err
}

// state returns the status of the source and of Options.HTTP for /readyz.
func (g *Gateway) state() map[string]any {
	all := map[string]any{}
	if p, ok := g.opts.Source.(pulled); ok {
		all["source"] = p.Status()
	}
	if m := g.replica; m != nil {
		maps.Copy(all, m.State())
	}
	if f := g.opts.HTTP.State; f != nil {
		maps.Copy(all, f())
	}
	return all
}

// behind returns a warning if the manifests are not the newest. For a revision it names the invalid places; further
// details are in the log.
func (g *Gateway) behind() string {
	p, ok := g.opts.Source.(pulled)
	if !ok {
		return g.reload.warning()
	}
	switch s := p.Status(); {
	case s.Failed == nil:
		return g.reload.warning()
	case s.Failed.Revision == "":
		return fmt.Sprintf("the source cannot be checked for a new revision: %s; %s is served", s.Failed, source.Named(s.Revision))
	default:
		return fmt.Sprintf("%s; %s is served, and the log says why", s.Failed, source.Named(s.Revision))
	}
}

// measureSource registers the metrics of the served revision.
func (g *Gateway) measureSource() error {
	p, ok := g.opts.Source.(pulled)
	if !ok || g.opts.MeterProvider == nil {
		return nil
	}
	meter := g.opts.MeterProvider.Meter(scope)
	since, err := meter.Int64ObservableGauge("toolctl.source.commit.since", metric.WithUnit("s"),
		metric.WithDescription("Time when the source's commit was first served, in seconds since 1970."))
	if err != nil {
		return err
	}
	failed, err := meter.Int64ObservableGauge("toolctl.source.failed",
		metric.WithDescription("1 if the newest commit of the source is not served or the source is unreachable, otherwise 0."))
	if err != nil {
		return err
	}
	r, err := meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		s := p.Status()
		from := attribute.String("toolctl.source", s.Source)
		if s.Since != nil {
			to.ObserveInt64(since, s.Since.Unix(), metric.WithAttributes(from, attribute.String("toolctl.commit", s.Revision)))
		}
		var bad int64
		if s.Failed != nil {
			bad = 1
		}
		to.ObserveInt64(failed, bad, metric.WithAttributes(from))
		return nil
	}, since, failed)
	if err == nil {
		g.measured = append(g.measured, r)
	}
	return err
}
