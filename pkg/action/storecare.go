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

// CheckStore reads all of the store, and has the database check itself.
type CheckStore struct{ *Config }

// Run reads the store. What is damaged is a problem of the report, not an error.
func (c *CheckStore) Run(ctx context.Context) (r store.Report, err error) {
	err = c.withKept(ctx, aboutStore, func(s store.Store) (err error) {
		r, err = store.Check(ctx, s)
		return err
	})
	return r, err
}

// BackupStore copies the store to a new file, while it is used.
type BackupStore struct {
	*Config
	File string
}

// Run copies the store as it is at one moment.
func (b *BackupStore) Run(ctx context.Context) error {
	return b.withKept(ctx, aboutStore, func(s store.Store) error {
		from, ok := s.(store.Backuper)
		if !ok {
			return usagef("this kind of store is not backed up to a file")
		}
		err := from.Backup(ctx, b.File)
		if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
			err = &UsageError{err}
		}
		return err
	})
}

// MigrateStore makes the store, or brings it to the version that this program needs.
type MigrateStore struct{ *Config }

// Run opens the store, which does it.
func (m *MigrateStore) Run(ctx context.Context) error {
	if err := m.noFiles(aboutStore); err != nil {
		return err
	}
	return m.withStore(ctx, true, func(store.Store) error { return nil })
}

// CopyStore makes a new store a copy of another one.
type CopyStore struct {
	*Config
	// From and To are addresses of stores.
	From, To string
}

// Run copies all or nothing, and returns what the new store holds.
func (c *CopyStore) Run(ctx context.Context) (r store.Report, err error) {
	if err := c.noFiles(aboutStore); err != nil {
		return r, err
	}
	from, err := c.OpenNamed(ctx, c.From, false)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	// What is damaged would be copied as it is, and its loss be found when the old store is gone.
	fromShown, _ := store.Shown(c.From)
	switch found, err := store.Check(ctx, from); {
	case err != nil:
		return r, err
	case len(found.Problems) > 0:
		return r, fmt.Errorf("the store to copy, %q, is damaged, and nothing was copied: %s: copy a backup of it, or begin a new store with 'toolctl apply'", fromShown, strings.Join(found.Problems, "; "))
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
		return r, invalidf("store %q: %s: a copy holds nothing but the other store; name one that does not exist yet", shown, store.ErrNotEmpty)
	case err != nil:
		return r, err
	}
	return store.Check(ctx, to)
}

// roomy is the Config for what makes room, and so must have room: MaxStoreBytes does not count.
func (c *Config) roomy() *Config {
	all := *c
	all.MaxStoreBytes = 0
	return &all
}

// PruneAudit removes old lines of the audit.
type PruneAudit struct {
	*Config
	// Before is the time from which on lines are kept.
	Before time.Time
	// DryRun removes nothing.
	DryRun bool
}

// Run removes the lines and adds one that says so.
func (p *PruneAudit) Run(ctx context.Context) (done store.AuditPrune, err error) {
	err = (&Audit{Config: p.roomy()}).Run(ctx, func(s store.Store, _ store.AuditFilter) (err error) {
		done, err = s.PruneAudit(ctx, store.PruneOptions{Before: p.Before, By: p.By, DryRun: p.DryRun})
		return err
	})
	return done, err
}

// CompactStore gives the room that is free in the store back to the disk.
type CompactStore struct {
	*Config
	// Retention removes older lines of the audit first. Default: none.
	Retention time.Duration
	// Pruned is told of what was removed, before the rest is done.
	Pruned func(store.AuditPrune)
}

// Compacted is how many bytes the store took before and takes now.
type Compacted struct{ Before, After int64 }

// Run compacts the store.
func (c *CompactStore) Run(ctx context.Context) (r Compacted, err error) {
	err = c.roomy().withKept(ctx, aboutStore, func(s store.Store) error {
		kept, ok := s.(store.Compacter)
		if !ok {
			return usagef("this kind of store is not kept on a disk")
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
			return fmt.Errorf("%w; rewriting the file needs room for twice its contents", err)
		}
		if err == nil {
			r.After, err = size()
		}
		return err
	})
	return r, err
}
