package scenario

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/registry"
)

// selection is a registry of chosen tools and policies.
type selection struct {
	reg *registry.Registry
	err error
}

// instant is the time of all mocked calls, so that limits by the minute, hour and day do not
// depend on when a test runs.
var instant = time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)

// choose returns the registry with the tools and policies that the scenario names.
func (p *player) choose(ctx context.Context) *registry.Registry {
	r := p.runner
	tools, okTools := p.find(v1.KindTool, "/spec/tools", p.spec.Tools)
	policies, okPolicies := p.find(v1.KindToolPolicy, "/spec/policies", p.spec.Policies)
	if !okTools || !okPolicies {
		return nil
	}
	key := strings.Join(keyNames(tools), ",") + "|" + strings.Join(keyNames(policies), ",")
	r.mu.Lock()
	defer r.mu.Unlock()
	sel := r.shared[key]
	if sel == nil {
		sel = &selection{}
		sel.reg, sel.err = r.build(ctx, tools, policies)
		r.shared[key] = sel
	}
	if sel.err != nil {
		p.fail(Failure{What: "scenario", Message: sel.err.Error()})
	}
	return sel.reg
}

// find returns the keys of the named objects; nil means all.
func (p *player) find(kind, field string, names []string) ([]v1.Key, bool) {
	if names == nil {
		return nil, true
	}
	keys, ok := make([]v1.Key, 0, len(names)), true
	for i, name := range names {
		item, err := p.lookup(kind, name)
		if err != nil {
			at := v1.Pointer(field, strconv.Itoa(i))
			p.fail(Failure{What: "scenario", Message: err.Error(), Field: at, Source: p.source(at)})
			ok = false
			continue
		}
		keys = append(keys, item.Object.Head().Key())
	}
	return keys, ok
}

// lookup finds an object, and of several with the name the one in the namespace of the scenario.
func (p *player) lookup(kind, name string) (registry.Item, error) {
	item, err := p.runner.base.Get(kind, "", name)
	if missing := (*v1.NotFoundError)(nil); errors.As(err, &missing) && missing.Ambiguous {
		item, err = p.runner.base.Get(kind, p.res.scenario.Namespace(), name)
	}
	return item, err
}

func keyNames(keys []v1.Key) []string {
	if keys == nil {
		return []string{"*"}
	}
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.Namespace + "/" + k.Name
	}
	slices.Sort(names)
	return names
}

// build creates a registry of the chosen tools and policies, and of all servers and prompts.
func (r *Runner) build(ctx context.Context, tools, policies []v1.Key) (*registry.Registry, error) {
	chosen := func(keys []v1.Key, o v1.Object) bool { return keys == nil || slices.Contains(keys, o.Head().Key()) }
	var objects []v1.Object
	for _, o := range r.objects {
		switch o.Head().Kind {
		case v1.KindTool:
			if chosen(tools, o) {
				objects = append(objects, o)
			}
		case v1.KindToolPolicy:
			if chosen(policies, o) {
				objects = append(objects, o)
			}
		case v1.KindMCPServer, v1.KindPrompt:
			objects = append(objects, o)
		}
	}
	if r.opts.Live != nil {
		return r.opts.Live(ctx, objects, counters{})
	}
	return registry.New(objects, registry.Options{Counters: counters{}, Approvals: approvals{}, Executors: r.opts.answerers(r.opts.Mock), Rules: r.opts.Rules, Now: r.now})
}

// now returns the time, which stands still for mocked calls.
func (r *Runner) now() time.Time {
	if r.opts.Live != nil {
		return time.Now()
	}
	return instant
}

// counters passes each call to the counters of its scenario, which the context holds. Scenarios
// share a registry but no counts.
type counters struct{}

type playerKey struct{}

// playerOf returns the player of the scenario that a call belongs to.
func playerOf(ctx context.Context) (*player, error) {
	p, ok := ctx.Value(playerKey{}).(*player)
	if !ok {
		return nil, errors.New("scenario: a call outside a scenario")
	}
	return p, nil
}

func (counters) Reserve(ctx context.Context, cs []v1.Counter) ([]v1.Count, int, error) {
	p, err := playerOf(ctx)
	if err != nil {
		return nil, 0, err
	}
	return p.counts.Reserve(ctx, cs)
}

func (counters) Release(ctx context.Context, cs []v1.Counter) error {
	p, err := playerOf(ctx)
	if err != nil {
		return err
	}
	return p.counts.Release(ctx, cs)
}

func (counters) Read(ctx context.Context, cs []v1.Counter) ([]v1.Count, error) {
	p, err := playerOf(ctx)
	if err != nil {
		return nil, err
	}
	return p.counts.Read(ctx, cs)
}
