package action

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"toolctl.dev/toolctl/pkg/store"
)

// CheckStore reads the whole store, and makes the database check itself.
type CheckStore struct{ *Config }

// Run checks the store. Damage is a problem in the report, not an error.
func (c *CheckStore) Run(ctx context.Context) (r store.Report, err error) {
	err = c.withKept(ctx, aboutStore, func(s store.Store) (err error) {
		r, err = store.Check(ctx, s)
		return err
	})
	return r, err
}

// BackupStore copies the store to a new file while it is in use.
type BackupStore struct {
	*Config
	File string
}

// Run copies the store as of one moment.
func (b *BackupStore) Run(ctx context.Context) error {
	return b.withKept(ctx, aboutStore, func(s store.Store) error {
		from, ok := s.(store.Backuper)
		if !ok {
			return usagef("this kind of store cannot be backed up to a file")
		}
		err := from.Backup(ctx, b.File)
		if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
			err = &UsageError{err}
		}
		return err
	})
}

// MigrateStore creates the store, or upgrades it to the version that this program needs.
type MigrateStore struct{ *Config }

// Run opens the store, which migrates it.
func (m *MigrateStore) Run(ctx context.Context) error {
	if err := m.noFiles(aboutStore); err != nil {
		return err
	}
	return m.withStore(ctx, true, func(store.Store) error { return nil })
}

// CopyStore copies a store to a new store.
type CopyStore struct {
	*Config
	// From and To are addresses of stores.
	From, To string
}

// Run copies everything or nothing, and returns the contents of the new store.
func (c *CopyStore) Run(ctx context.Context) (r store.Report, err error) {
	if err := c.noFiles(aboutStore); err != nil {
		return r, err
	}
	from, err := c.OpenNamed(ctx, c.From, false)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	// A copy of a damaged store would hide the damage until the old store is gone.
	fromShown, _ := store.Shown(c.From)
	switch found, err := store.Check(ctx, from); {
	case err != nil:
		return r, err
	case len(found.Problems) > 0:
		return r, fmt.Errorf("the store to copy, %q, is damaged, and nothing was copied: %s: copy a backup instead, or create a new store with 'toolctl apply'", fromShown, strings.Join(found.Problems, "; "))
	}
	to, err := c.OpenNamed(ctx, c.To, true)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	switch err := store.Copy(ctx, to, from); {
	case errors.Is(err, store.ErrNoCopy):
		return r, &UsageError{err}
	case errors.Is(err, store.ErrNotEmpty):
		shown, _ := store.Shown(c.To)
		return r, invalidf("store %q: %s: the target of a copy must be empty; name a store that does not exist yet", shown, store.ErrNotEmpty)
	case err != nil:
		return r, err
	}
	return store.Check(ctx, to)
}

// roomy returns a Config without MaxStoreBytes, for verbs that free space in a full store.
func (c *Config) roomy() *Config {
	all := *c
	all.MaxStoreBytes = 0
	return &all
}

// PruneAudit deletes old audit records.
type PruneAudit struct {
	*Config
	// Before is the time of the oldest record to keep.
	Before time.Time
	// DryRun deletes nothing.
	DryRun bool
}

// Run deletes the records and adds a record of the deletion.
func (p *PruneAudit) Run(ctx context.Context) (done store.AuditPrune, err error) {
	err = (&Audit{Config: p.roomy()}).Run(ctx, func(s store.Store, _ store.AuditFilter) (err error) {
		done, err = s.PruneAudit(ctx, store.PruneOptions{Before: p.Before, By: p.By, DryRun: p.DryRun})
		return err
	})
	return done, err
}

// CompactStore returns free space in the store to the disk.
type CompactStore struct {
	*Config
	// Retention first deletes audit records older than this. Default: none.
	Retention time.Duration
	// Pruned is called with the deleted records before the store is compacted.
	Pruned func(store.AuditPrune)
}

// Compacted are the sizes of the store before and after, in bytes.
type Compacted struct{ Before, After int64 }

// Run compacts the store.
func (c *CompactStore) Run(ctx context.Context) (r Compacted, err error) {
	err = c.roomy().withKept(ctx, aboutStore, func(s store.Store) error {
		kept, ok := s.(store.Compacter)
		if !ok {
			return usagef("this kind of store is not on a disk")
		}
		if c.Retention > 0 {
			p, err := s.PruneAudit(ctx, store.PruneOptions{Before: time.Now().Add(-c.Retention), By: c.By})
			if err != nil {
				return err
			}
			c.Pruned(p)
		}
		size := func() (int64, error) {
			if sized, ok := s.(store.Sized); ok {
				return sized.Size(ctx)
			}
			return 0, nil
		}
		if r.Before, err = size(); err == nil {
			err = kept.Compact(ctx)
		}
		if errors.Is(err, store.ErrFull) {
			return fmt.Errorf("%w; rewriting the file needs space for twice its contents", err)
		}
		if err == nil {
			r.After, err = size()
		}
		return err
	})
	return r, err
}
