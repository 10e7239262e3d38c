package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/validate"
)

// Options configure a Registry. The zero value has no executor: the registry can list tools but not call them.
type Options struct {
	// Executors execute the calls, one for each name. A manifest chooses one by spec.mode; see [Extender] for executors
	// with a block of their own.
	Executors []Executor
	// Rules are policy rules written in Go, in the order of evaluation.
	Rules []policy.Rule
	// Middleware wraps every call; the first is the outermost. Default: no middleware.
	Middleware []Middleware
	// Counters keep the counts of policies. Default: in memory, for the life of the registry.
	Counters policy.Counters
	// Approvals keep the calls that wait for approval. Default: in memory, for the life of the registry.
	Approvals Approvals
	// Audit receives the audit records of each call. Default: no audit log.
	Audit Auditor
	// AuditBestEffort lets calls continue when their record of intent cannot be written. Default: they are refused.
	AuditBestEffort bool
	// Attachments hold the values that calls pass by reference. Default: a reference is an ordinary text.
	Attachments *Attachments
	// OnCall is called with each finished call, by the goroutine of the call: it must not block. Default: nil.
	OnCall func(CallEvent)
	// OnPending is called with each call that starts to wait for approval. It must not block. Default: nil.
	OnPending func(v1.PendingCall)
	// Logger receives warnings, such as the violations of a tool whose validation is "warn". Default: nothing is
	// logged.
	Logger *slog.Logger
	// TracerProvider creates a span for each call, with its phases as children. Default: no spans.
	TracerProvider trace.TracerProvider
	// MeterProvider counts and times calls. Default: no metrics.
	MeterProvider metric.MeterProvider
	// Parallel is the maximum number of calls that ExecuteAll runs in parallel. Default: 16.
	Parallel int
	// Now is the clock of policies and the audit. Default: time.Now.
	Now func() time.Time
}

const defaultParallel = 16

// Registry is the compiled set of manifests. All methods are safe for concurrent use.
type Registry struct {
	// Fixed after New.
	opts      Options
	observer  *observer
	audit     auditor
	executors map[string]Executor
	schemas   *validate.Cache
	// extensions are the extensions of manifests by executors and rules.
	extensions []extension
	handler    Handler // Execute, with the middleware

	snap atomic.Pointer[snapshot]
	mu   sync.Mutex // held while the next snapshot is built
}

// New compiles objects into a Registry. A broken object is not an error: see [Registry.List]. New returns an error if
// the options contradict each other.
func New(objects []v1.Object, o Options) (*Registry, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Parallel <= 0 {
		o.Parallel = defaultParallel
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Counters == nil {
		o.Counters = policy.NewMemoryCounters(o.Now)
	}
	if o.Approvals == nil {
		o.Approvals = new(MemoryApprovals)
	}
	r := &Registry{opts: o, executors: map[string]Executor{}, schemas: validate.NewCache(validate.Options{})}
	for _, e := range o.Executors {
		if _, twice := r.executors[e.Name()]; twice {
			return nil, fmt.Errorf("registry: two executors are named %q", e.Name())
		}
		r.executors[e.Name()] = e
	}
	r.audit.sink, r.audit.now = o.Audit, o.Now
	if err := r.extend(); err != nil {
		return nil, err
	}
	var err error
	if r.observer, err = newObserver(o.TracerProvider, o.MeterProvider); err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	r.audit.seen = r.observer
	r.handler = r.around(r.execute)
	r.snap.Store(r.build(contents{given: objects}, &snapshot{}))
	return r, nil
}

// Register adds objects. It changes nothing and returns an error if an object with the same kind, namespace and name
// exists.
func (r *Registry) Register(objects ...v1.Object) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.snap.Load()
	next := slices.Clone(old.given)
	seen := make(map[v1.Key]bool, len(objects))
	for _, o := range objects {
		key := o.Head().Key()
		if _, ok := old.byKey[key]; ok || seen[key] {
			return fmt.Errorf("registry: %s is registered already", key)
		}
		if violations := append(allViolations(o), r.checkExtensions(o)...); hasError(violations) {
			return v1.NewValidationError(v1.ManifestInvalid, key.Name, violations)
		}
		seen[key] = true
		next = append(next, o)
	}
	r.swap(func(c *contents) { c.given = next })
	return nil
}

// Unregister removes the objects with the given keys. It changes nothing and returns a [v1.NotFoundError] if one does
// not exist.
func (r *Registry) Unregister(keys ...v1.Key) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.snap.Load()
	drop := make(map[v1.Key]bool, len(keys))
	for _, k := range keys {
		if _, ok := old.byKey[k]; !ok {
			return &v1.NotFoundError{Kind: k.Kind, Name: k.Namespace + "/" + k.Name}
		}
		drop[k] = true
	}
	next := slices.DeleteFunc(slices.Clone(old.given), func(o v1.Object) bool { return drop[o.Head().Key()] })
	r.swap(func(c *contents) { c.given = next })
	return nil
}

// Replace swaps the whole set. Running calls finish with the old set. Discovered tools are kept for servers that are
// also in the new set.
func (r *Registry) Replace(objects []v1.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.swap(func(c *contents) { c.given = objects })
}

// swap builds the next snapshot from changed contents, under mu.
func (r *Registry) swap(change func(*contents)) {
	old := r.snap.Load()
	next := old.contents
	change(&next)
	r.snap.Store(r.build(next, old))
}

// Close closes the executors, and with them connections and child processes.
func (r *Registry) Close() error {
	var errs []error
	if n, _ := r.LateAudit(); n > 0 {
		if err := r.RetryAudit(context.Background()); err != nil {
			errs = append(errs, fmt.Errorf("the outcomes of %s cannot be written to the audit log: %w", clip.Count(n, "call"), err))
		}
	}
	for _, e := range r.opts.Executors {
		if c, ok := e.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// allViolations returns the violations that the reader found and those that Validate finds.
func allViolations(o v1.Object) []v1.Violation {
	h := o.Head()
	if h.Broken() {
		return h.Violations // the reader has called Validate
	}
	if h.Source.IsZero() {
		return append(slices.Clip(h.Violations), o.Validate()...)
	}
	return h.Violations
}

func hasError(violations []v1.Violation) bool {
	return slices.ContainsFunc(violations, func(f v1.Violation) bool { return !f.IsWarning() })
}
