package policy

import (
	"context"
	"slices"
	"sync"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Overlay is a policy that holds for some calls only, besides those of the set: the
// one that a prompt carries, for the calls of a run of it. It governs the tools of
// every namespace. It may be used by many goroutines at once.
type Overlay struct {
	// Fixed after NewOverlay.
	manifest v1.ToolPolicy

	mu     sync.Mutex
	chains map[*Chain]*Chain // by the chain of the set
}

// NewOverlay returns the policy of the prompt. Refusals name it "prompt/NAME".
func NewOverlay(prompt *v1.Header, spec v1.ToolPolicySpec) *Overlay {
	o := &Overlay{chains: map[*Chain]*Chain{}}
	o.manifest.Header = v1.Header{Metadata: v1.Metadata{Name: prompt.Metadata.Name, Namespace: prompt.Namespace()}, Source: prompt.Field("/spec/policy")}
	o.manifest.Spec = spec
	return o
}

type overlayKey struct{}

// WithOverlay returns a context whose calls the overlay governs too; a nil one takes
// away the one that ctx has.
func WithOverlay(ctx context.Context, o *Overlay) context.Context {
	return context.WithValue(ctx, overlayKey{}, o)
}

// Over returns the chain that governs a call made with ctx, whose tool the chain c governs.
func Over(ctx context.Context, c *Chain) *Chain {
	if o, _ := ctx.Value(overlayKey{}).(*Overlay); o != nil {
		return o.Over(c)
	}
	return c
}

// Over returns the rules of c and of the overlay as one chain, in the order in which
// rules are asked. A nil Overlay leaves the chain as it is.
func (o *Overlay) Over(c *Chain) *Chain {
	if o == nil || c == nil {
		return c
	}
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
	for i, p := range c.set.policies {
		if p.mismatch(c.tool) == "" {
			manifests = append(manifests, c.set.manifests[i])
		}
	}
	own := o.manifest
	own.Metadata.Namespace = c.tool.Namespace // where its rules are asked
	set := compile(append(slices.Clip(manifests), &own), func(p *policy, from *v1.ToolPolicy) {
		if from == &own {
			p.name = "prompt/" + own.Metadata.Name
			p.key = "prompt " + escape(o.manifest.Namespace()) + "/" + escape(own.Metadata.Name)
		}
	})
	return set.For(c.tool)
}
