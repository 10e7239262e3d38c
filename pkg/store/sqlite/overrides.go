package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

// SetOverride adds an override and returns it with its version and time. An empty
// Description takes back what was there before. It is durable once SetOverride returned.
func (s *Store) SetOverride(ctx context.Context, o store.Override) (store.Override, error) {
	if o.Tool == "" || len(o.Description) > store.MaxDescription {
		return o, fmt.Errorf("an override needs a tool and a description of at most %d bytes", store.MaxDescription)
	}
	if o.Namespace == "" {
		o.Namespace = v1.DefaultNamespace
	}
	o.Time = time.UnixMicro(time.Now().UnixMicro()).UTC()
	err := s.write(ctx, true, func(c *sql.Conn) error {
		ch := &v1.AuditChange{Command: "override", Action: "overridden", Kind: v1.KindTool, Name: o.Tool}
		if o.Description == "" {
			ch.Action = "restored"
		}
		err := c.QueryRowContext(ctx, "SELECT coalesce(max(version), 0) FROM overrides WHERE namespace = ? AND tool = ?", o.Namespace, o.Tool).Scan(&ch.From)
		if err != nil {
			return err
		}
		res, err := c.ExecContext(ctx, "INSERT INTO overrides (namespace, tool, description, author, time) VALUES (?, ?, ?, ?, ?)",
			o.Namespace, o.Tool, o.Description, o.Author, o.Time.UnixMicro())
		if err != nil {
			return err
		}
		if o.Version, err = res.LastInsertId(); err != nil {
			return err
		}
		ch.To = o.Version
		return addAudit(ctx, c, changeLine(o.Time, o.Author, o.Namespace, ch))
	})
	if err != nil {
		return o, err
	}
	s.notifier.notify()
	return o, nil
}

// Overrides returns the overrides that hold now, by namespace and tool.
func (s *Store) Overrides(ctx context.Context) ([]store.Override, error) {
	return s.overrides(ctx, `SELECT version, namespace, tool, description, author, time FROM overrides o
		WHERE description <> '' AND version = (SELECT max(version) FROM overrides WHERE namespace = o.namespace AND tool = o.tool)
		ORDER BY namespace, tool`)
}

// OverrideHistory returns every override that a tool ever had, the newest first, those
// that took one back included. An empty namespace means all.
func (s *Store) OverrideHistory(ctx context.Context, namespace, tool string) ([]store.Override, error) {
	return s.overrides(ctx, `SELECT version, namespace, tool, description, author, time FROM overrides
		WHERE tool = ? AND (? = '' OR namespace = ?) ORDER BY version DESC`, tool, namespace, namespace)
}

func (s *Store) overrides(ctx context.Context, query string, args ...any) ([]store.Override, error) {
	var all []store.Override
	err := s.read(ctx, func(c *sql.Conn) error {
		all = nil
		rows, err := c.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var o store.Override
			var at int64
			if err := rows.Scan(&o.Version, &o.Namespace, &o.Tool, &o.Description, &o.Author, &at); err != nil {
				return err
			}
			o.Time = time.UnixMicro(at).UTC()
			all = append(all, o)
		}
		return rows.Err()
	})
	return all, err
}

// WatchOverrides yields the overrides that hold whenever one was made or taken back, by
// any process, the first time at once; it waits for more until ctx ends or the loop is
// left. An error ends it.
func (s *Store) WatchOverrides(ctx context.Context) iter.Seq2[[]store.Override, error] {
	return func(yield func([]store.Override, error) bool) {
		tick := time.NewTicker(s.interval)
		defer tick.Stop()
		for seen := int64(-1); ; {
			wake := s.notifier.next() // before looking, so that nothing falls between
			at, err := s.overrideVersion(ctx)
			var now []store.Override
			if err == nil && at != seen {
				now, err = s.Overrides(ctx)
			}
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				yield(nil, err)
				return
			case at != seen:
				if !yield(now, nil) {
					return
				}
				seen = at
			}
			if err := s.await(ctx, wake, tick.C); err != nil {
				if errors.Is(err, store.ErrClosed) {
					yield(nil, err)
				}
				return
			}
		}
	}
}

func (s *Store) overrideVersion(ctx context.Context) (at int64, err error) {
	err = s.read(ctx, func(c *sql.Conn) error {
		err := c.QueryRowContext(ctx, "SELECT version FROM overrides ORDER BY version DESC LIMIT 1").Scan(&at)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return at, err
}
