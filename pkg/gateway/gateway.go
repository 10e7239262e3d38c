package gateway

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/seal"
	"toolctl.dev/toolctl/internal/tracing"
	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/executors"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/mcp/server"
	"toolctl.dev/toolctl/pkg/permit"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/replica"
	"toolctl.dev/toolctl/pkg/store"
)

// Gateway is a set of manifests that can be called and served. Its methods are safe for concurrent use.
type Gateway struct {
	// Fixed after Open.
	opts    Options
	log     *slog.Logger
	reg     *registry.Registry
	servers *servers
	catalog *catalog
	files   []*fileWatch
	http    server.HTTPOptions
	// admission applies to every entry point.
	admission *admission.Admission
	tasks     tasks
	store     store.Store // Options.Store, timed
	// approvals are the pending calls, in the store or else in memory.
	approvals store.Approvals
	// decided is the address at which pending calls are decided in addition to the store; nil without one.
	decided atomic.Pointer[string]

	measured []metric.Registration

	// answered is when a remote store last answered; nil with a local store, and with replicas, which know it from
	// their leases.
	answered atomic.Pointer[time.Time]

	keys    *seal.Keys      // nil without Options.Replicas
	replica *replica.Member // nil until Serve has joined
	singles *singles

	reload   reload
	serving  sync.Once
	stopping context.Context // ends when Serve stops
	stop     context.CancelFunc
	server   atomic.Pointer[server.Server] // nil until the gateway serves
	handling sync.Once
	handler  http.Handler
}

// Open loads the manifests and prepares them for calls. It starts no MCP server yet. A manifest with a violation is not
// an error, see [Gateway.Violations]. ctx applies to the loading only; [Gateway.Close] ends background tasks.
func Open(ctx context.Context, o Options) (opened *Gateway, err error) {
	if o, err = o.withDefaults(); err != nil {
		return nil, err
	}
	remember(o.Source, o.Store)
	if o.Source, err = o.extended(); err != nil {
		return nil, err
	}
	set, err := o.Source.Load(ctx)
	if err != nil {
		return nil, err
	}
	g := &Gateway{opts: o, log: o.Logger, http: o.HTTP}
	g.stopping, g.stop = context.WithCancel(context.WithoutCancel(ctx))
	g.reload.served = set.Objects
	g.reload.violations = set.Violations
	objects := g.permitted(set.Objects)
	g.singles = &singles{Gateway: g}
	g.servers = newServers(objects, o.Locked, o.LockFile, g.refresh, g.mcpOptions())
	defer func() {
		if err != nil {
			opened, err = nil, errors.Join(err, g.Close())
		}
	}()
	if g.store, err = g.measuredStore(); err != nil {
		return nil, err
	}
	if g.reg, err = registry.New(objects, g.registryOptions()); err != nil {
		return nil, err
	}
	if o.Store != nil {
		overrides, err := o.Store.Overrides(ctx)
		if err != nil {
			return nil, err
		}
		applyOverrides(g.reg, overrides)
	}
	g.servers.attach(g.reg)
	g.catalog = newCatalog(g)
	if err := g.catalog.checkToolset(); err != nil {
		return nil, err
	}
	if o.TokenFile != "" {
		if err = g.watchTokens(); err != nil {
			return nil, err
		}
	}
	if o.Replicas != nil {
		if o.Store == nil {
			return nil, errors.New("replicas need a store to find each other")
		}
		if err = g.watchKeys(); err != nil {
			return nil, err
		}
	}
	if o.Store != nil && store.Shared(o.Store) && o.Replicas == nil {
		now := time.Now() // opening the store succeeded
		g.answered.Store(&now)
	}
	if o.Store != nil && o.Limits.RateCounters == nil && (o.Replicas != nil || store.Shared(o.Store)) {
		o.Limits.RateCounters = g.store
	}
	g.admission = admission.New(o.Limits)
	g.http.NotReady, g.http.Warning, g.http.State = g.notReady, g.warning, g.state
	if err := errors.Join(g.measure(), g.measureAdmission(), g.measureSource()); err != nil {
		return nil, err
	}
	g.tasks.open(ctx)
	if o.Watch {
		return g, g.watch()
	}
	return g, nil
}

// with adds the objects of the options to those of the source.
func (g *Gateway) with(objects []v1.Object) []v1.Object {
	if len(g.opts.Objects) == 0 {
		return objects
	}
	return append(objects[:len(objects):len(objects)], g.opts.Objects...)
}

// permitted returns the objects of the source that are served, together with the objects of the options.
func (g *Gateway) permitted(objects []v1.Object) []v1.Object {
	served := g.opts.Permit.Apply(objects)
	refused, first := 0, ""
	for i, o := range served {
		if bad := o.Head().Violations; len(bad) > len(objects[i].Head().Violations) {
			if refused++; refused == 1 {
				first = o.Head().Key().String() + ": " + bad[len(bad)-1].Message
			}
		}
	}
	if refused > 0 {
		g.log.Info("objects are not ready because they need permissions that they do not have", "objects", refused, "first", first)
	}
	return g.with(served)
}

func (g *Gateway) registryOptions() registry.Options {
	o := &g.opts
	all := append(executors.All(executors.Options{
		Env: o.Env, AllowEnv: o.AllowEnv, Logger: g.log, Upstream: g.servers, Propagate: tracing.Header,
		AllowPrivateNetwork: o.AllowPrivateNetwork, AllowNetwork: o.AllowNetwork,
	}), o.Executors...)
	if o.WrapExecutors != nil {
		all = o.WrapExecutors(all)
	}
	r := registry.Options{Executors: all, Rules: o.Rules, Middleware: o.Middleware, Counters: o.Counters, Attachments: o.Attachments, OnCall: o.OnCall, OnPending: o.OnPending, Logger: g.log, TracerProvider: o.TracerProvider, MeterProvider: o.MeterProvider}
	if o.Store == nil {
		kept := new(registry.MemoryApprovals)
		g.approvals, r.Approvals = kept, kept
	}
	if s := g.store; s != nil {
		g.approvals = s
		r.Audit, r.Approvals, r.AuditBestEffort = s, s, o.AuditBestEffort
		if r.Counters == nil {
			r.Counters = s
		}
	}
	return r
}

func (g *Gateway) mcpOptions() mcp.Options {
	o := &g.opts
	return mcp.Options{
		Meta: tracing.Meta, TracerProvider: o.TracerProvider, MeterProvider: o.MeterProvider, Env: o.Env, AllowEnv: o.AllowEnv, Logger: g.log,
		AllowPrivateNetwork: o.AllowPrivateNetwork, AllowNetwork: o.AllowNetwork, Name: o.Name, Version: o.Version,
		Single: g.singles, ConfigDir: o.ConfigDir, OpenBrowser: o.OpenBrowser, Hurry: o.Hurry,
		OnUpdate: func(_ v1.Key, uri string) {
			if s := g.server.Load(); s != nil {
				s.ResourceUpdated(uri)
			}
		},
		OnListChanged: func(server v1.Key, list string) {
			if s := g.server.Load(); s != nil {
				s.ListChanged(server, list)
			}
		},
	}
}

// refresh makes the server update its lists.
func (g *Gateway) refresh() {
	if s := g.server.Load(); s != nil {
		s.Refresh()
	}
}

// Registry returns the compiled set of manifests. Its contents change with the manifests.
func (g *Gateway) Registry() *registry.Registry { return g.reg }

// Store returns Options.Store, which may be nil.
func (g *Gateway) Store() store.Store { return g.opts.Store }

// Options returns the options of the gateway.
func (g *Gateway) Options() Options { return g.opts }

// List lists the declared objects and the tools of the MCP servers that were queried. It returns an error if the query
// is invalid.
func (g *Gateway) List(q registry.Query) (registry.Page, error) { return g.reg.List(q) }

// Violations returns the violations of the served manifests, including warnings. It is empty for manifests in a store,
// because a store accepts no violations.
func (g *Gateway) Violations() []v1.Violation {
	g.reload.mu.Lock()
	defer g.reload.mu.Unlock()
	return g.reload.violations
}

// Close stops serving, all background tasks, sessions and child processes, and waits for them. It does not close the
// store.
func (g *Gateway) Close() error {
	g.stop()
	if s := g.server.Load(); s != nil {
		s.Close()
	}
	g.tasks.close()
	var errs []error
	for _, m := range g.measured {
		errs = append(errs, m.Unregister())
	}
	if g.reg != nil {
		errs = append(errs, g.reg.Close())
	}
	return errors.Join(append(errs, g.servers.Close())...)
}

// tasks are the background goroutines of a gateway.
type tasks struct {
	ctx    context.Context // ends with the gateway
	cancel context.CancelFunc

	mu     sync.Mutex
	closed bool
	all    sync.WaitGroup
}

func (t *tasks) open(ctx context.Context) {
	t.ctx, t.cancel = context.WithCancel(context.WithoutCancel(ctx))
}

// run runs f in a goroutine with a context that ends when the gateway closes.
func (t *tasks) run(f func(context.Context)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.all.Go(func() { f(t.ctx) })
	}
}

func (t *tasks) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	if t.cancel != nil {
		t.cancel()
	}
	t.all.Wait()
}

// configDir returns the folder for sign-ins to MCP servers.
func configDir() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "toolctl")
}

// withDefaults fills in the defaults and returns an error for contradictory options.
func (o Options) withDefaults() (Options, error) {
	if o.Source == nil {
		if o.Source = (objects)(nil); o.Store != nil {
			o.Source = Stored(o.Store, false)
		}
	}
	if s, ok := o.Source.(interface{ manyWrite() bool }); ok && o.Permit == nil && s.manyWrite() {
		o.Permit = &permit.Rules{}
	}
	if o.Permit != nil && o.AllowPrivateNetwork {
		all := *o.Permit
		all.PrivateNetwork = []string{"*"}
		o.Permit = &all
	}
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Name, o.Version = cmp.Or(o.Name, "toolctl"), cmp.Or(o.Version, "dev")
	o.ConfigDir = cmp.Or(o.ConfigDir, configDir())
	if _, err := registry.ParseSelector(o.Subset.Selector); err != nil {
		return o, err
	}
	if err := o.HTTP.Validate(); err != nil {
		return o, err
	}
	return o, nil
}

// objects is a source without manifests.
type objects []v1.Object

func (o objects) Load(context.Context) (*manifest.Set, error) { return &manifest.Set{Objects: o}, nil }

func (o objects) Watch(context.Context, func(error)) (<-chan struct{}, error) { return nil, nil }
