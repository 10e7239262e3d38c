package memory

import (
	"context"
	"encoding/hex"
	"slices"
	"sort"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/chain"
	"toolctl.dev/toolctl/pkg/store/internal/watch"
)

// trail is the audit.
type trail struct {
	state chain.State
	rows  []chain.Row // their IDs follow state.Pruned, without gaps but before links
	head  chain.Hash
	bytes int64
}

func sizeOf(lines []chain.Line) (n int64) {
	for _, l := range lines {
		n += int64(len(l.Text))
	}
	return n
}

// add adds lines to the chain.
func (t *trail) add(lines []chain.Line) {
	for _, l := range lines {
		t.head = t.head.Next(l.Text)
		t.state.Written++
		t.state.Note(t.state.Written, &l.Record)
		t.bytes += int64(len(l.Text))
		t.rows = append(t.rows, chain.NewRow(t.state.Written, l, t.head))
	}
}

// append adds a line to the audit while the store is locked.
func (s *Store) append(r v1.AuditRecord) error {
	lines, err := chain.NewLines(r)
	if err != nil {
		return err
	}
	if err := s.room(sizeOf(lines)); err != nil {
		return err
	}
	s.trail.add(lines)
	s.audited.Notify()
	return nil
}

// AppendAudit implements [store.Audit].
func (s *Store) AppendAudit(ctx context.Context, line v1.AuditRecord) error {
	if line.Time.IsZero() {
		line.Time = s.now().UTC()
	}
	return s.write(ctx, func() error { return s.append(line) })
}

// EachAudit implements [store.Audit].
func (s *Store) EachAudit(ctx context.Context, filter store.AuditFilter, fn func(store.AuditLine) error) error {
	if err := filter.Check(); err != nil {
		return err
	}
	match := newMatcher(filter)
	var chosen []chain.Row
	err := s.read(ctx, func() error {
		// The lines before are never changed, so a part of the list stays as it is.
		rows := s.trail.rows
		after := sort.Search(len(rows), func(i int) bool { return rows[i].ID > filter.After })
		for _, r := range rows[after:] {
			if !r.IsLink() && match.fits(&r, s.trail.state.Open) {
				chosen = append(chosen, r)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if filter.Limit > 0 {
		chosen = chosen[max(len(chosen)-filter.Limit, 0):]
	}
	for _, r := range chosen {
		if err := s.check(ctx); err != nil {
			return err
		}
		if err := fn(store.AuditLine{ID: r.ID, Hash: hex.EncodeToString(r.Hash), Text: slices.Clone(r.Text)}); err != nil {
			return err
		}
	}
	return nil
}

// FollowAudit implements [store.Audit].
func (s *Store) FollowAudit(ctx context.Context, filter store.AuditFilter, fn func([]store.AuditLine) error) error {
	return watch.Audit(ctx, &s.audited, s, filter, fn)
}

// AuditHead implements [store.Audit].
func (s *Store) AuditHead(ctx context.Context) (head store.AuditHead, err error) {
	err = s.read(ctx, func() error {
		head = store.AuditHead{Hash: s.trail.head.String(), Lines: s.trail.state.Written}
		return nil
	})
	return head, err
}

// VerifyAudit implements [store.Audit].
func (s *Store) VerifyAudit(ctx context.Context, head string) (check store.AuditCheck, err error) {
	v, err := chain.NewVerifier(head)
	if err != nil {
		return check, err
	}
	err = s.read(ctx, func() error {
		v.Start(s.trail.state)
		for i := range s.trail.rows {
			if !v.Add(&s.trail.rows[i]) {
				break
			}
		}
		check = v.End()
		return nil
	})
	return check, err
}

// PruneAudit implements [store.Audit].
func (s *Store) PruneAudit(ctx context.Context, opts store.PruneOptions) (p store.AuditPrune, err error) {
	now := s.now()
	if err := opts.Check(now); err != nil {
		return p, err
	}
	old := func(r *chain.Row) bool { return r.IsLink() || r.Time < opts.Before.UnixMicro() }
	work := func() error {
		t := &s.trail
		p = store.AuditPrune{}
		var left []chain.Row
		removed := t.state // of which the number and the hash are kept
		var links chain.Links
		for i, r := range t.rows {
			if !r.IsLink() && old(&r) {
				p.Lines++
			}
			last := i+1 == len(t.rows)
			switch {
			case !old(&r):
				p.Kept++
			case !last && old(&t.rows[i+1]):
				continue // what goes on from it goes too
			case len(left) == 0:
				removed.Pruned, removed.Start = r.ID, chain.Hash(r.Hash)
				continue
			default:
				r = chain.Row{ID: r.ID, Hash: r.Hash, Text: []byte(chain.LinkText)}
			}
			left = append(left, r)
			links.Add(r.ID, r.Hash, r.IsLink())
		}
		if len(t.rows) > 0 {
			p.Start = t.rows[0].ID
		}
		if p.Lines == 0 {
			return nil
		}
		p.Start, p.Hash = removed.Pruned+1, removed.Start.String()
		if opts.DryRun {
			return nil
		}
		lines, err := chain.NewLines(chain.Prune(opts, now, t.rows[0].ID, p, &links))
		if err != nil {
			return err
		}
		t.bytes = 0
		for _, r := range left {
			t.bytes += int64(len(r.Text))
		}
		t.state.Prune(removed.Pruned, removed.Start, left)
		t.rows = left
		t.add(lines)
		s.audited.Notify()
		return nil
	}
	if opts.DryRun {
		return p, s.read(ctx, work)
	}
	return p, s.write(ctx, work)
}
