package gateway

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
)

// reload is the state of reloading manifests.
type reload struct {
	failed atomic.Pointer[time.Time] // when the last reload failed; nil if it succeeded

	mu         sync.Mutex
	served     []v1.Object         // from the source
	violations []v1.Violation      // of the served objects: a start omits objects with violations
	told       string              // the last error in the log
	unset      map[string][]string // last output of warnings.unset
}

// Reload serves the present manifests of the source, unless they have a violation: then it changes nothing and returns
// the violations. Running calls finish with the old manifests. Reload does not wait for MCP servers: new and changed
// ones are queried in the background.
func (g *Gateway) Reload(ctx context.Context) error {
	g.reload.mu.Lock()
	defer g.reload.mu.Unlock()
	set, err := g.opts.Source.Load(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	same := err == nil && reflect.DeepEqual(set.Objects, g.reload.served) && slices.Equal(errorTexts(set.Violations), errorTexts(g.reload.violations))
	if err == nil && !same {
		err = g.check(ctx, set)
	}
	if err != nil {
		return g.reloadFailed(ctx, err)
	}
	g.reload.told = ""
	fixed := g.reload.failed.Swap(nil) != nil
	if same {
		if fixed {
			g.log.Info("the manifests match the served objects again")
		}
		return nil
	}
	g.replace(set)
	g.log.Info("reloaded", "objects", len(set.Objects))
	return nil
}

// Replace serves a set as it is. Broken objects are listed as not ready. Replace does not wait for MCP servers.
func (g *Gateway) Replace(set *manifest.Set) {
	g.reload.mu.Lock()
	defer g.reload.mu.Unlock()
	g.replace(set)
}

func (g *Gateway) replace(set *manifest.Set) {
	g.reload.served, g.reload.violations = set.Objects, set.Violations
	changed := g.servers.replace(g.permitted(set.Objects))
	g.servers.asked.await(changed)
	g.refresh()
	var found warnings
	if g.server.Load() != nil {
		found.unset(g)
	}
	found.prompts(g.catalog)
	if len(changed) == 0 {
		found.log(g.log)
		return
	}
	g.tasks.run(func(ctx context.Context) {
		found.states(g.servers.discover(ctx, changed...))
		found.log(g.log)
	})
}

// check returns the violations of a set that is to be served, each error once.
func (g *Gateway) check(ctx context.Context, set *manifest.Set) error {
	var err error
	for _, f := range g.keepBack(ctx, set) {
		err = errors.Join(err, errors.New(f.String()))
	}
	return err
}

// keepBack returns the violations that prevent a set from being served, each once. A missing permission does not
// prevent it: the object is not ready, and the others are served.
func (g *Gateway) keepBack(ctx context.Context, set *manifest.Set) (bad []v1.Violation) {
	told := map[string]bool{}
	for _, f := range append(slices.Clip(set.Violations), g.reg.CheckObjects(ctx, g.with(set.Objects))...) {
		if text := f.String(); !f.IsWarning() && !f.Forbidden && !told[text] {
			told[text] = true
			bad = append(bad, f)
		}
	}
	return bad
}

func (g *Gateway) reloadFailed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	now := time.Now()
	g.reload.failed.Store(&now)
	if text := err.Error(); text != g.reload.told { // the log may be in a watched folder
		g.reload.told = text
		g.log.Error("the reload failed: the previous manifests stay in service", "error", text)
	}
	return err
}

// warning returns the text for /readyz. Anyone may read it, so the reasons are in the log only.
func (r *reload) warning() string {
	at := r.failed.Load()
	if at == nil {
		return ""
	}
	return fmt.Sprintf("the reload at %s failed; the manifests before it are served, and the log says why", at.UTC().Format(time.RFC3339))
}

// errorTexts returns the violations that prevent manifests from being served.
func errorTexts(violations []v1.Violation) []string {
	var texts []string
	for _, f := range v1.Errors(violations) {
		texts = append(texts, f.String())
	}
	return texts
}

// watch reloads after each change of the source, until the gateway is closed.
func (g *Gateway) watch() error {
	changed, err := g.opts.Source.Watch(g.tasks.ctx, func(err error) { g.log.Warn("watching the manifests", "error", err) })
	if err != nil {
		return fmt.Errorf("watch the manifests: %w", err)
	}
	if changed == nil {
		return errors.New("changes of these manifests cannot be watched")
	}
	g.tasks.run(func(ctx context.Context) {
		for range changed {
			_ = g.Reload(ctx) // Reload logs its errors
		}
	})
	return nil
}
