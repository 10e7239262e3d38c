package sqlstore

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/chain"
)

// Limits of one step of a prune. A step locks the audit log while it runs, and the journal of the database holds its
// changes until it is committed.
const (
	pruneLines   = 10_000
	pruneBytes   = 4 << 20
	leastPruning = 64 << 10 // if the disk is nearly full
)

// linkTime is the time of rows that are links instead of records; isLine is the condition for records. They are
// constants in the queries, so that the database knows how few links exist.
const (
	linkTime = "-9000000000000000000"
	isLine   = " AND time > " + linkTime
)

// PruneAudit implements [store.Audit].
func (m Methods) PruneAudit(ctx context.Context, opts store.PruneOptions) (p store.AuditPrune, err error) {
	now, err := m.b.Now(ctx)
	if err == nil {
		err = opts.Check(now)
	}
	if err != nil {
		return p, err
	}
	before := opts.Before.UnixMicro()
	var last int64
	err = m.b.Read(ctx, func(tx Tx) error {
		p = store.AuditPrune{}
		if err := One(tx, []any{&p.Lines}, "SELECT count(*) FROM "+m.d.Audit+" AND time < $1"+isLine, before); err != nil {
			return err
		}
		// The expression makes the database use the time index instead of the ID index from the newest record on.
		if err := One(tx, []any{&last}, "SELECT coalesce(max("+m.d.Line+" + 0), 0) FROM "+m.d.Audit+" AND time < $1"+isLine, before); err != nil {
			return err
		}
		if err := One(tx, []any{&p.Kept}, "SELECT count(*) FROM "+m.d.Audit+" AND time >= $1"+isLine, before); err != nil {
			return err
		}
		return m.start(tx, before, &p)
	})
	if err != nil || opts.DryRun || p.Lines == 0 {
		return p, err
	}
	step := prune{m, opts, now, pruneBytes, 0, last}
	for p.Lines = 0; ; {
		var part store.AuditPrune
		err := m.b.Write(ctx, func(tx Tx) (err error) {
			part, err = step.carryOut(tx)
			return err
		})
		switch {
		case (errors.Is(err, store.ErrFull) || errors.Is(err, store.ErrLimit)) && step.bytes > leastPruning:
			step.bytes /= 4
			continue
		case err != nil:
			return p, err
		case part.Lines == 0:
			return p, nil
		}
		p.Lines, p.Start, p.Hash = p.Lines+part.Lines, part.Start, part.Hash
	}
}

// start finds the first record of the audit log without the records before a time.
func (m Methods) start(tx Tx, before int64, p *store.AuditPrune) error {
	var first *int64
	if p.Lines == 0 {
		return One(tx, []any{&p.Start}, "SELECT coalesce(min("+m.d.Line+"), 0) FROM "+m.d.Audit)
	}
	if err := One(tx, []any{&first}, "SELECT min("+m.d.Line+") FROM "+m.d.Audit+" AND time >= $1"+isLine, before); err != nil {
		return err
	}
	if first != nil {
		p.Start = *first
	} else if err := One(tx, []any{&p.Start}, "SELECT max("+m.d.Line+") + 1 FROM "+m.d.Audit); err != nil {
		return err
	}
	var hash []byte
	_, err := find(tx, []any{&hash}, "SELECT hash FROM "+m.d.Audit+" AND "+m.d.Line+" = $1", p.Start-1)
	p.Hash = hex.EncodeToString(hash)
	return err
}

// prune is a prune of the audit log, in steps from the oldest record on.
type prune struct {
	Methods
	store.PruneOptions
	now   time.Time
	bytes int   // maximum size of the records of a step
	done  int64 // the last removed record
	last  int64 // the last record to remove
}

// carryOut executes one step.
func (s *prune) carryOut(tx Tx) (p store.AuditPrune, err error) {
	var pruned, first int64
	var hash []byte
	if err := One(tx, []any{&pruned, &hash}, s.d.Start); err != nil { // locks the row against other writers
		return p, err
	}
	if err := One(tx, []any{&first}, "SELECT coalesce(min("+s.d.Line+"), 0) FROM "+s.d.Audit); err != nil {
		return p, err
	}
	last, freed, err := s.next(tx, &p)
	if err != nil || p.Lines == 0 {
		return p, err
	}
	if err := s.remove(tx, max(s.done, first), last); err != nil {
		return p, err
	}
	// If the first row is a link, the audit log starts after it.
	var link int64
	var linked []byte
	var is bool
	if there, err := find(tx, []any{&link, &linked, &is}, "SELECT "+s.d.Line+", hash, time = "+linkTime+" FROM "+s.d.Audit+" ORDER BY "+s.d.Line+" LIMIT 1"); err != nil {
		return p, err
	} else if there && is {
		pruned, hash = link, linked
		if _, err := tx.Exec("DELETE FROM "+s.d.Audit+" AND "+s.d.Line+" = $1", link); err != nil {
			return p, err
		}
	}
	if _, err := tx.Exec(s.d.SetStart, pruned, hash, freed); err != nil {
		return p, err
	}
	p.Start, p.Hash = pruned+1, hex.EncodeToString(hash)
	links, err := s.links(tx)
	if err != nil {
		return p, err
	}
	s.done = last
	return p, tx.AddAudit(chain.Prune(s.PruneOptions, s.now, first, p, links))
}

// next selects the records of a step and returns the last one.
func (s *prune) next(tx Tx, p *store.AuditPrune) (last, freed int64, err error) {
	_, err = all(tx, func(r Rows) (_ struct{}, err error) {
		var line, size int64
		if err = r.Scan(&line, &size); freed < int64(s.bytes) {
			last, freed = line, freed+size
			p.Lines++
		}
		return struct{}{}, err
	}, "SELECT "+s.d.Line+", length(record) FROM "+s.d.Audit+" AND "+s.d.Line+" > $1 AND "+s.d.Line+" <= $2 AND time + 0 < $3"+isLine+" ORDER BY "+s.d.Line+" LIMIT $4",
		s.done, s.last, s.Before.UnixMicro(), pruneLines)
	return last, freed, err
}

// remove removes records, and leaves links where a removed record precedes a remaining one.
func (s *prune) remove(tx Tx, first, last int64) error {
	table, chained, _ := strings.Cut(s.d.Audit, " WHERE ")
	rows := " AND " + s.d.Line + " BETWEEN $1 AND $2 AND time + 0 < $3"
	linked := fmt.Sprintf("(%[1]s.%[2]s = $2 OR EXISTS (SELECT 1 FROM %[1]s next WHERE %[3]s AND next.%[2]s = %[1]s.%[2]s + 1 AND next.time >= $3))", table, s.d.Line, chained)
	values := []any{first, last, s.Before.UnixMicro()}
	if _, err := tx.Exec("DELETE FROM "+s.d.Audit+rows+" AND NOT "+linked, values...); err != nil {
		return err
	}
	if _, err := tx.Exec("UPDATE "+table+" SET time = "+linkTime+", tool = '', session = '', status = '', principal = '', record = $4 WHERE "+chained+rows, append(values, []byte(chain.LinkText))...); err != nil {
		return err
	}
	_, err := tx.Exec("DELETE FROM toolctl_audit_open WHERE line <= $1 AND NOT EXISTS (SELECT 1 FROM "+s.d.Audit+isLine+" AND "+s.d.Line+" = line)", last)
	return err
}

// links returns the digest of the remaining rows up to the last link.
func (s *prune) links(tx Tx) (*chain.Links, error) {
	links := &chain.Links{}
	var last *int64
	if err := One(tx, []any{&last}, "SELECT max("+s.d.Line+" + 0) FROM "+s.d.Audit+" AND time = "+linkTime); err != nil || last == nil {
		return links, err
	}
	_, err := all(tx, func(r Rows) (_ struct{}, err error) {
		var line int64
		var hash []byte
		var link bool
		err = r.Scan(&line, &hash, &link)
		links.Add(line, hash, link)
		return struct{}{}, err
	}, "SELECT "+s.d.Line+", hash, time = "+linkTime+" FROM "+s.d.Audit+" AND "+s.d.Line+" <= $1 ORDER BY "+s.d.Line, *last)
	return links, err
}
