package gateway

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/replica"
	"toolctl.dev/toolctl/pkg/store"
)

// scope is the OpenTelemetry instrumentation scope.
const scope = "toolctl.dev/toolctl/pkg/gateway"

// gauge is a number that is read when metrics are collected; false means that it is unknown.
type gauge struct {
	name, unit, text string
	read             func(context.Context) (int64, bool)
}

// measure registers the metrics of the store and of the calls that wait in it.
func (g *Gateway) measure() error {
	gauges := []gauge{{"toolctl.approvals.pending", "{call}", "Calls that wait for approval.", seldom(5*time.Second, func(ctx context.Context) (int64, error) {
		n, err := g.approvals.CountPending(ctx, time.Now())
		return int64(n), err
	})}}
	if s, ok := g.opts.Store.(store.Sized); ok {
		gauges = append(gauges, gauge{"toolctl.store.size", "By", "Size of the store in bytes.", seldom(time.Minute, s.Size)})
	}
	if g.opts.Store != nil {
		gauges = append(gauges, gauge{"toolctl.audit.failing", "", "1 while the audit log cannot be written, otherwise 0.",
			func(context.Context) (int64, bool) { return number(g.reg.AuditError() != nil), true }})
	}
	return g.observe(gauges...)
}

// measureReplica registers the metrics of this process as a replica.
func (g *Gateway) measureReplica(m *replica.Member) error {
	return g.observe(
		gauge{"toolctl.replica.lease", "", "1 while this replica holds its lease, else 0.", func(context.Context) (int64, bool) { return number(m.NotReady() == ""), true }},
		gauge{"toolctl.replica.neighbours", "{replica}", "Other replicas with a lease.", func(context.Context) (int64, bool) { return int64(m.Neighbours()), true }},
	)
}

// observe reads gauges whenever metrics are collected, until Close.
func (g *Gateway) observe(gauges ...gauge) error {
	if g.opts.MeterProvider == nil {
		return nil
	}
	meter := g.opts.MeterProvider.Meter(scope)
	for _, one := range gauges {
		made, err := meter.Int64ObservableGauge(one.name, metric.WithUnit(one.unit), metric.WithDescription(one.text))
		if err != nil {
			return err
		}
		r, err := meter.RegisterCallback(func(ctx context.Context, to metric.Observer) error {
			if n, ok := one.read(ctx); ok {
				to.ObserveInt64(made, n)
			}
			return nil
		}, made)
		if err != nil {
			return err
		}
		g.measured = append(g.measured, r)
	}
	return nil
}

// measureAdmission registers the metrics of the limits: the current use of each, and the refusals.
func (g *Gateway) measureAdmission() error {
	if g.opts.MeterProvider == nil {
		return nil
	}
	meter := g.opts.MeterProvider.Meter(scope)
	used, err := meter.Int64ObservableGauge("toolctl.admission.used", metric.WithDescription("Current use of a concurrency limit."))
	most, err2 := meter.Int64ObservableGauge("toolctl.admission.max", metric.WithDescription("Value of the limit."))
	memory, err3 := meter.Int64ObservableGauge("toolctl.admission.memory", metric.WithUnit("By"), metric.WithDescription("Used part of the memory budget."))
	refused, err4 := meter.Int64ObservableCounter("toolctl.admission.refused", metric.WithUnit("{request}"), metric.WithDescription("Refused requests and calls, by limit."))
	if err := errors.Join(err, err2, err3, err4); err != nil {
		return err
	}
	r, err := meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		s := g.admission.Snapshot()
		of := func(limit string) metric.MeasurementOption {
			return metric.WithAttributes(attribute.String("toolctl.limit", limit))
		}
		for limit, u := range s.Quotas {
			to.ObserveInt64(used, u.InUse, of(limit))
			to.ObserveInt64(most, u.Max, of(limit))
		}
		for limit, n := range s.Refused {
			to.ObserveInt64(refused, n, of(limit))
		}
		to.ObserveInt64(memory, s.Memory.InUse)
		return nil
	}, used, most, memory, refused)
	if err != nil {
		return err
	}
	g.measured = append(g.measured, r)
	return nil
}

func number(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// seldom reads a number from the store at most once per interval. A collection of metrics waits for it for one second
// at most.
func seldom(every time.Duration, ask func(context.Context) (int64, error)) func(context.Context) (int64, bool) {
	const patience = time.Second
	var mu sync.Mutex
	var asked time.Time
	var n int64
	var err error
	return func(ctx context.Context) (int64, bool) {
		mu.Lock()
		defer mu.Unlock()
		if asked.IsZero() || time.Since(asked) >= every {
			within, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			n, err = ask(within)
			asked = time.Now()
		}
		return n, err == nil
	}
}

// measuredStore measures the duration of store operations.
type measuredStore struct {
	store.Store
	took metric.Float64Histogram
}

// measuredStore returns Options.Store, with measurements if metrics are enabled.
func (g *Gateway) measuredStore() (store.Store, error) {
	if g.opts.Store == nil || g.opts.MeterProvider == nil {
		return g.opts.Store, nil
	}
	took, err := g.opts.MeterProvider.Meter(scope).Float64Histogram("toolctl.store.operation.duration", metric.WithUnit("s"),
		metric.WithDescription("Duration of store operations."), metric.WithExplicitBucketBoundaries(0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30))
	return &measuredStore{g.opts.Store, took}, err
}

// time records an operation with its error.
func (m *measuredStore) time(ctx context.Context, operation string, began time.Time, err *error) {
	attrs := []attribute.KeyValue{attribute.String("toolctl.store.operation", operation)}
	if failure := storeFailure(*err); failure != "" {
		attrs = append(attrs, semconv.ErrorTypeKey.String(failure))
	}
	m.took.Record(ctx, time.Since(began).Seconds(), metric.WithAttributes(attrs...))
}

// storeFailures maps errors of a store to their error.type. The first match wins.
var storeFailures = []struct {
	name string
	err  error
}{
	{"closed", store.ErrClosed}, {"full", store.ErrFull}, {"limit", store.ErrLimit}, {"read_only", store.ErrReadOnly}, {"damaged", store.ErrDamaged},
	{"busy", store.ErrBusy}, {"unavailable", store.ErrUnavailable}, {"timeout", context.DeadlineExceeded}, {"cancelled", context.Canceled},
}

// storeFailure returns the error.type of an operation; it is empty if the store worked correctly, even if it refused
// the operation.
func storeFailure(err error) string {
	var missing *v1.NotFoundError
	var decided *v1.ApprovalError
	var refused *v1.PolicyError
	if err == nil || errors.Is(err, v1.ErrPendingFull) || errors.As(err, &missing) || errors.As(err, &decided) || errors.As(err, &refused) {
		return ""
	}
	for _, known := range storeFailures {
		if errors.Is(err, known.err) {
			return known.name
		}
	}
	return "_OTHER"
}

func (m *measuredStore) Reserve(ctx context.Context, c []v1.Counter) (counts []v1.Count, full int, err error) {
	defer m.time(ctx, "reserve", time.Now(), &err)
	return m.Store.Reserve(ctx, c)
}

func (m *measuredStore) Release(ctx context.Context, c []v1.Counter) (err error) {
	defer m.time(ctx, "release", time.Now(), &err)
	return m.Store.Release(ctx, c)
}

func (m *measuredStore) AppendAudit(ctx context.Context, line v1.AuditRecord) (err error) {
	defer m.time(ctx, "append_audit", time.Now(), &err)
	return m.Store.AppendAudit(ctx, line)
}

func (m *measuredStore) TakeApproval(ctx context.Context, p v1.PendingCall, name string) (found v1.PendingCall, err error) {
	defer m.time(ctx, "take_approval", time.Now(), &err)
	return m.Store.TakeApproval(ctx, p, name)
}

func (m *measuredStore) DecideApproval(ctx context.Context, id string, d v1.Decision, now time.Time) (p v1.PendingCall, err error) {
	defer m.time(ctx, "decide_approval", time.Now(), &err)
	return m.Store.DecideApproval(ctx, id, d, now)
}

func (m *measuredStore) HoldLeases(ctx context.Context, holder string, leases []store.Lease, lasts time.Duration) (all []store.Lease, now time.Time, err error) {
	defer m.time(ctx, "hold_leases", time.Now(), &err)
	return m.Store.HoldLeases(ctx, holder, leases, lasts)
}

// KeepGap implements [registry.GapKeeper] if the store does.
func (m *measuredStore) KeepGap(missing v1.AuditGap) {
	if k, ok := m.Store.(registry.GapKeeper); ok {
		k.KeepGap(missing)
	}
}
