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

// Options change how a store is opened. The zero value opens an existing store.
type Options struct {
	// Create makes the file and its folder when they do not exist, readable by
	// their owner only (0600 and 0700). A file or folder that others can write is refused,
	// and a file that others can read is made 0600. Default: a missing store is an error that
	// is [fs.ErrNotExist].
	Create bool
	// BusyTimeout is how long to wait for another process that is writing before
	// giving up with [ErrBusy]. Default: 10 s.
	BusyTimeout time.Duration
	// WatchInterval is how often a watch looks for the changes of other processes;
	// those of this process reach it at once. Default: 250 ms.
	WatchInterval time.Duration
	// KeepChanges is how many changes a watch can go back; older ones are
	// compacted. Default: 10,000.
	KeepChanges int
	// MaxBytes is how large the file may become; what would make it larger is refused with
	// [ErrLimit]. A file that is larger already does not grow. Default: no limit.
	MaxBytes int64
	// MaxConnections is how many connections to a database this process may have, the one that
	// listens for changes included; at least 3. Default: what the DSN says (pool_max_conns, and one
	// that listens), else [DefaultConnections].
	MaxConnections int
}

// Check refuses options that make no sense. Backends call it.
func (o Options) Check() error {
	if o.BusyTimeout < 0 || o.WatchInterval < 0 || o.KeepChanges < 0 || o.MaxBytes < 0 {
		return errors.New("store: BusyTimeout, WatchInterval, KeepChanges and MaxBytes may not be negative")
	}
	return nil
}

// DefaultConnections let 10 gateways, one more of a rolling upgrade and 2 operators share the 97
// connections that PostgreSQL has for users by default.
const DefaultConnections = 7

// Opener opens a store of one kind. A store that is not there is an error that is
// [fs.ErrNotExist], one of a newer toolctl [ErrNewer], and what is no store, or is damaged,
// [ErrDamaged]. An older store is brought up to date.
type Opener func(ctx context.Context, dsn string, opts Options) (Store, error)

// Backends are the kinds of store that a program knows, by the scheme of their DSN; ""
// opens what has no scheme.
type Backends map[string]Opener

// NameError says that a DSN cannot be read, or names what is and becomes no store, such as a folder.
type NameError struct{ Err error }

func (e *NameError) Error() string { return e.Err.Error() }
func (e *NameError) Unwrap() error { return e.Err }

// Open opens the store that dsn names. Errors show its scheme only: the rest may hold a
// password.
func (b Backends) Open(ctx context.Context, dsn string, opts Options) (Store, error) {
	if dsn == ":memory:" { // as SQLite has it
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

// Shown is a DSN as it may be printed: without its password. secret says that it had one.
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

// expected says what a DSN may be.
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
