package policy

import (
	"fmt"
	"slices"
	"strings"
)

// Audience is the set of principals that may call a tool which a policy that
// matches principals blocks for others.
type Audience struct {
	chain *Chain
	text  string
}

// Audience returns the principals that may call the tool; nil if its policies block the tool for all principals or for
// no principal.
func (c *Chain) Audience() *Audience {
	if c == nil || !c.personal || c.blocked {
		return nil
	}
	var refuse []string
	for _, r := range c.steps {
		if r.blocks() { // if this rule blocked all principals, the chain would be blocked
			refuse = append(refuse, fmt.Sprintf("%q", r.policy.match.Principals))
		}
	}
	if refuse == nil {
		return nil
	}
	slices.Sort(refuse)
	return &Audience{chain: c, text: strings.Join(slices.Compact(refuse), " ")}
}

// Sees reports whether the principal may make some call.
func (a *Audience) Sees(principal string) bool { return a.chain.BlockedFor(principal) == nil }

// String returns the same text for audiences that see the same.
func (a *Audience) String() string { return a.text }
