package store

import (
	"context"
	"time"
)

// Lease is something that one holder has for a time: a process its place among others, or what
// only one of them may have.
type Lease struct {
	// Name is what is held, such as "server/default/ledger".
	Name string
	// Holder is who holds it.
	Holder string
	// Value is what the holder says of it; anyone may read it.
	Value string
	// Expires is when it ends unless it is renewed, by the clock of the store.
	Expires time.Time
}

// MaxLeases is how many leases a store holds at most.
const MaxLeases = 10_000

// Leases are what processes hold for a time, by the clock of the store.
type Leases interface {
	// HoldLeases makes the holder hold these, by their Name and with their Value, for a time from
	// now, all but those that another holds. It returns every lease of the store that has
	// not expired, sorted by name, and what time it is. With no lease it only reads.
	HoldLeases(ctx context.Context, holder string, leases []Lease, lasts time.Duration) (all []Lease, now time.Time, err error)
	// ReturnLeases ends leases of a holder, all of them when none is named. Those of others stay.
	ReturnLeases(ctx context.Context, holder string, names ...string) error
}
