package sqlite

import (
	"context"
	"time"

	"toolctl.dev/toolctl/pkg/store"
)

// FollowAudit calls fn for the lines that EachAudit would, and then for those that any
// process adds, some at a time, until ctx ends or fn returns an error, which it returns.
// It is called at least once, with no lines when there are none.
func (s *Store) FollowAudit(ctx context.Context, filter store.AuditFilter, fn func([]store.AuditLine) error) error {
	tick := time.NewTicker(s.interval)
	defer tick.Stop()
	for first := true; ; first = false {
		head, err := s.AuditHead(ctx)
		if err != nil {
			return err
		}
		if first || head.Lines > filter.After {
			filter.UpTo = head.Lines
			if err := s.someAudit(ctx, filter, fn); err != nil {
				return err
			}
			filter.After, filter.Limit = head.Lines, 0
		}
		if err := s.await(ctx, nil, tick.C); err != nil {
			return err
		}
	}
}

// someAudit hands out the lines of EachAudit in parts, the last of which may be empty.
func (s *Store) someAudit(ctx context.Context, filter store.AuditFilter, fn func([]store.AuditLine) error) error {
	var part []store.AuditLine
	err := s.EachAudit(ctx, filter, func(l store.AuditLine) error {
		if part = append(part, l); len(part) < auditPageLines {
			return nil
		}
		full := part
		part = nil
		return fn(full)
	})
	if err != nil {
		return err
	}
	return fn(part)
}
