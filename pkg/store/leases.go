package store

import (
	"context"
	"time"
)

// Lease is a name that one holder owns for a limited time, such as the membership of a process, or a resource that only
// one process may use.
type Lease struct {
	// Name is the name of the lease, such as "server/default/ledger".
	Name string
	// Holder is the owner of the lease.
	Holder string
	// Value is data of the holder that anyone may read.
	Value string
	// Expires is when the lease ends unless it is renewed, by the clock of the store.
	Expires time.Time
}

// MaxLeases is the maximum number of leases in a store.
const MaxLeases = 10_000

// Leases are owned by processes for a limited time, by the clock of the store.
type Leases interface {
	// HoldLeases acquires or renews these leases for the holder, by their Name and with their Value, except those that
	// another holder owns. They last for the given time from now. It returns every lease of the store that has not
	// expired, sorted by name, and the present time. Without leases it only reads.
	HoldLeases(ctx context.Context, holder string, leases []Lease, lasts time.Duration) (all []Lease, now time.Time, err error)
	// ReturnLeases ends the named leases of a holder, or all of its leases without names. It ignores leases of other
	// holders.
	ReturnLeases(ctx context.Context, holder string, names ...string) error
}
