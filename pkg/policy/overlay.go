package policy

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Overlay is a policy that holds for some calls only, besides those of the set: the
// one that a prompt carries, for the calls of a run of it, that of a scenario, or the
// consent that a tool asks for. It governs the tools of every namespace. It may be used by many goroutines at once.
type Overlay struct {
	// Fixed after NewOverlay.
	manifest v1.ToolPolicy
	owner    string   // the kind of what carries it, in lower case
	base     *Overlay // that holds too; nil for none

	mu     sync.Mutex
	chains map[*Chain]*Chain // by the chain of the set
}

// NewOverlay returns the policy of a prompt, a scenario or a tool. Refusals name it
// "prompt/NAME", "scenario/NAME" or "tool/NAME".
func NewOverlay(owner *v1.Header, spec v1.ToolPolicySpec) *Overlay {
	o := &Overlay{chains: map[*Chain]*Chain{}, owner: strings.ToLower(cmp.Or(owner.Kind, v1.KindPrompt))}
	o.manifest.Header = v1.Header{Metadata: v1.Metadata{Name: owner.Metadata.Name, Namespace: owner.Namespace()}, Source: owner.Field("/spec/policy")}
	o.manifest.Spec = spec
	return o
}

// After returns the overlay as one that holds besides base; a nil base changes nothing.
func (o *Overlay) After(base *Overlay) *Overlay {
	if base == nil || base == o {
		return o
	}
	return &Overlay{manifest: o.manifest, owner: o.owner, base: base, chains: map[*Chain]*Chain{}}
}

// Within returns the overlay of a run within one that outer governs: both hold, and what
// both of them count is one count. Either may be nil. What runs within itself is in it once.
func (o *Overlay) Within(outer *Overlay) *Overlay {
	if o == nil {
		return outer
	}
	for at := outer; at != nil; at = at.base {
		if at.owner == o.owner && at.manifest.Key() == o.manifest.Key() {
			return outer
		}
	}
	return o.After(outer)
}

type overlayKey struct{}

// WithOverlay returns a context whose calls the overlay governs too; a nil one takes
// away the one that ctx has.
func WithOverlay(ctx context.Context, o *Overlay) context.Context {
	return context.WithValue(ctx, overlayKey{}, o)
}

// OverlayOf returns the overlay of ctx; nil when it has none.
func OverlayOf(ctx context.Context) *Overlay {
	o, _ := ctx.Value(overlayKey{}).(*Overlay)
	return o
}

// Over returns the chain that governs a call made with ctx, whose tool the chain c governs.
func Over(ctx context.Context, c *Chain) *Chain { return OverlayOf(ctx).Over(c) }

// Over returns the rules of c and of the overlay as one chain, in the order in which
// rules are asked. A nil Overlay leaves the chain as it is.
func (o *Overlay) Over(c *Chain) *Chain {
	if o == nil || c == nil {
		return c
	}
	c = o.base.Over(c)
	o.mu.Lock()
	defer o.mu.Unlock()
	joined := o.chains[c]
	if joined == nil {
		if len(o.chains) >= maxOverlaid {
			clear(o.chains) // chains of sets that are long replaced
		}
		joined = o.join(c)
		o.chains[c] = joined
	}
	return joined
}

// maxOverlaid bounds what an overlay remembers when the registry is replaced under a run.
const maxOverlaid = 10_000

func (o *Overlay) join(c *Chain) *Chain {
	var manifests []*v1.ToolPolicy
	before := map[*v1.ToolPolicy]*policy{}
	for i, p := range c.set.policies {
		if p.mismatch(c.tool) == "" {
			manifests = append(manifests, c.set.manifests[i])
			before[c.set.manifests[i]] = p
		}
	}
	own := o.manifest
	own.Metadata.Namespace = c.tool.Namespace // where its rules are asked
	set := compile(append(slices.Clip(manifests), &own), c.set.goRules, func(p *policy, from *v1.ToolPolicy) {
		if from == &own {
			p.name = o.owner + "/" + own.Metadata.Name
			p.key = o.owner + " " + escape(o.manifest.Namespace()) + "/" + escape(own.Metadata.Name)
		} else { // another overlay's has a name of its own
			p.name, p.key = before[from].name, before[from].key
		}
	})
	return set.For(c.tool)
}
