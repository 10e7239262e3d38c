package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Options configure how a store is opened. The zero value opens an existing store.
type Options struct {
	// Create creates the file and its folder if they do not exist, accessible to their owner only (0600 and 0700). A
	// file or folder that others can write is refused, and a file that others can read is changed to 0600. Default: a
	// missing store is an error that is [fs.ErrNotExist].
	Create bool
	// BusyTimeout is how long to wait for another writing process before the error [ErrBusy]. Default: 10 s.
	BusyTimeout time.Duration
	// WatchInterval is the interval at which a watch looks for changes by other processes; it gets changes by this
	// process at once. Default: 250 ms.
	WatchInterval time.Duration
	// KeepChanges is the number of changes that a watch can go back; older ones are compacted. Default: 10,000.
	KeepChanges int
	// MaxBytes is the maximum size of the file. A larger change fails with [ErrLimit]. A file that is larger already
	// does not grow. Default: no limit.
	MaxBytes int64
	// MaxConnections is the maximum number of connections of this process to a database, including the one that listens
	// for changes; at least 3. Default: pool_max_conns in the DSN plus the one that listens, or else
	// [DefaultConnections].
	MaxConnections int
}

// Check returns an error for invalid options. Backends call it.
func (o Options) Check() error {
	if o.BusyTimeout < 0 || o.WatchInterval < 0 || o.KeepChanges < 0 || o.MaxBytes < 0 {
		return errors.New("store: BusyTimeout, WatchInterval, KeepChanges and MaxBytes may not be negative")
	}
	return nil
}

// DefaultConnections is chosen so that 10 gateways, one more during a rolling upgrade and 2 operators can share the 97
// connections that PostgreSQL has for users by default.
const DefaultConnections = 7

// Opener opens a store of one kind. The error is [fs.ErrNotExist] for a missing store, [ErrNewer] for one of a newer
// toolctl, and [ErrDamaged] for a file or database that is not a store or is damaged. An older store is migrated.
type Opener func(ctx context.Context, dsn string, opts Options) (Store, error)

// Backends maps the scheme of a DSN to the kind of store; "" is for a DSN without a scheme.
type Backends map[string]Opener

// NameError says that a DSN cannot be parsed, or names something that cannot be a store, such as a folder.
type NameError struct{ Err error }

func (e *NameError) Error() string { return e.Err.Error() }
func (e *NameError) Unwrap() error { return e.Err }

// Open opens the store that dsn names. Errors show only the scheme, because the rest may contain a password.
func (b Backends) Open(ctx context.Context, dsn string, opts Options) (Store, error) {
	if dsn == ":memory:" { // the name in SQLite
		dsn = "memory:"
	}
	scheme, _, ok := strings.Cut(dsn, ":")
	if open := b[scheme]; ok && open != nil {
		return open(ctx, dsn, opts)
	}
	if scheme, _, ok := strings.Cut(dsn, "://"); ok || b[""] == nil {
		return nil, &NameError{fmt.Errorf("store: unknown kind of store %q: expected %s", scheme, b.expected())}
	}
	return b[""](ctx, dsn, opts)
}

// Shown returns a DSN without its password, for display. secret reports whether it had one.
func Shown(dsn string) (shown string, secret bool) {
	scheme, _, remote := strings.Cut(dsn, "://")
	if !remote {
		return dsn, false
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return scheme + "://…", true
	}
	if _, secret = u.User.Password(); secret {
		u.User = url.User(u.User.Username())
	}
	q := u.Query()
	for _, name := range []string{"password", "sslpassword"} {
		if q.Has(name) {
			secret = true
			q.Del(name)
		}
	}
	if secret {
		u.RawQuery = q.Encode()
		return u.String(), true
	}
	return dsn, false
}

// expected describes the valid forms of a DSN.
func (b Backends) expected() string {
	var forms []string
	for _, scheme := range slices.Sorted(maps.Keys(b)) {
		if scheme == "" {
			forms = append(forms, "a file's path")
		} else {
			forms = append(forms, fmt.Sprintf("%q", scheme+":…"))
		}
	}
	return strings.Join(forms, " or ")
}
