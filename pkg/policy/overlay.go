package policy

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Overlay is a policy for some calls only, in addition to the set: the policy of a prompt for the calls of its run,
// the policy of a scenario, or the consent that a tool requires. It governs the tools of every namespace, and is safe
// for concurrent use.
type Overlay struct {
	// Fixed after NewOverlay.
	manifest v1.ToolPolicy
	owner    string   // kind of the owner in lower case
	base     *Overlay // another overlay that also applies; may be nil

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

// After returns the overlay in addition to base; a nil base changes nothing.
func (o *Overlay) After(base *Overlay) *Overlay {
	if base == nil || base == o {
		return o
	}
	return &Overlay{manifest: o.manifest, owner: o.owner, base: base, chains: map[*Chain]*Chain{}}
}

// Within returns the overlay of a run inside a run that outer governs. Both overlays apply, and share common counts.
// Either may be nil. A recursive run adds its overlay only once.
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

// WithOverlay returns a context whose calls the overlay also governs. A nil overlay removes the overlay of ctx.
func WithOverlay(ctx context.Context, o *Overlay) context.Context {
	return context.WithValue(ctx, overlayKey{}, o)
}

// OverlayOf returns the overlay of ctx; nil if it has no overlay.
func OverlayOf(ctx context.Context) *Overlay {
	o, _ := ctx.Value(overlayKey{}).(*Overlay)
	return o
}

// Over returns the chain that governs a call with ctx of a tool that the chain c governs.
func Over(ctx context.Context, c *Chain) *Chain { return OverlayOf(ctx).Over(c) }

// Over returns the rules of c and of the overlay as one chain, in the order of evaluation.
// A nil Overlay returns c.
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
			clear(o.chains) // most cached chains belong to replaced sets
		}
		joined = o.join(c)
		o.chains[c] = joined
	}
	return joined
}

// maxOverlaid limits the number of cached chains of an overlay, because the registry may be replaced during a run.
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
	own.Metadata.Namespace = c.tool.Namespace // the namespace in which its rules are evaluated
	set := compile(append(slices.Clip(manifests), &own), c.set.goRules, func(p *policy, from *v1.ToolPolicy) {
		if from == &own {
			p.name = o.owner + "/" + own.Metadata.Name
			p.key = o.owner + " " + escape(o.manifest.Namespace()) + "/" + escape(own.Metadata.Name)
		} else { // the policies of another overlay have their own names
			p.name, p.key = before[from].name, before[from].key
		}
	})
	return set.For(c.tool)
}
