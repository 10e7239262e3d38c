package postgres

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/plan"
)

// Apply implements [store.Objects].
func (s *Store) Apply(ctx context.Context, objects []v1.Object, opts store.ApplyOptions) ([]store.Change, error) {
	wanted, err := plan.Want(objects, opts)
	if err != nil {
		return nil, err
	}
	var p *plan.Plan
	prepare := func(tx pgx.Tx) (err error) {
		p, err = wanted.Plan(reader{ctx, tx}, time.Now().UnixMicro())
		return err
	}
	if opts.DryRun {
		err = s.read(ctx, prepare)
	} else {
		err = s.change(ctx, func(tx pgx.Tx) (*plan.Plan, []v1.AuditRecord, error) {
			if err := prepare(tx); err != nil {
				return nil, nil, err
			}
			return p, p.Lines(opts.By, cmp.Or(opts.Command, "apply"), string(store.Pruned)), nil
		})
	}
	if err != nil {
		return nil, err
	}
	return p.Changes, nil
}

// Delete implements [store.Objects].
func (s *Store) Delete(ctx context.Context, keys []v1.Key, opts store.DeleteOptions) ([]store.Record, error) {
	var p *plan.Plan
	err := s.change(ctx, func(tx pgx.Tx) (_ *plan.Plan, lines []v1.AuditRecord, err error) {
		if p, err = plan.Delete(reader{ctx, tx}, keys, time.Now().UnixMicro()); err != nil {
			return nil, nil, err
		}
		return p, p.Lines(opts.By, cmp.Or(opts.Command, "delete"), "deleted"), nil
	})
	if err != nil {
		return nil, err
	}
	return p.Removed, nil
}

// change makes a plan and carries it out, alone of all who change objects.
func (s *Store) change(ctx context.Context, prepare func(tx pgx.Tx) (*plan.Plan, []v1.AuditRecord, error)) error {
	var p *plan.Plan
	err := s.write(ctx, func(tx pgx.Tx) error {
		if _, err := next(ctx, tx, "objects", 0); err != nil {
			return err
		}
		var lines []v1.AuditRecord
		var err error
		if p, lines, err = prepare(tx); err != nil {
			return err
		}
		if err := s.carryOut(ctx, tx, p); err != nil {
			return err
		}
		return s.addAudit(ctx, tx, lines...)
	})
	if err == nil && len(p.Log) > 0 {
		s.changed.Notify()
	}
	return err
}

// next holds the row of what is counted by a name until the transaction ends, and returns its
// number after adding to it.
func next(ctx context.Context, tx pgx.Tx, name string, add int64) (n int64, err error) {
	query := "UPDATE toolctl_revision SET value = value + $2 WHERE name = $1 RETURNING value"
	if add == 0 {
		query = "SELECT value + $2 FROM toolctl_revision WHERE name = $1 FOR UPDATE"
	}
	err = tx.QueryRow(ctx, query, name, add).Scan(&n)
	return n, err
}

// changed has the database tell every process of a change once the transaction is committed.
func changed(ctx context.Context, tx pgx.Tx, what string) error {
	_, err := tx.Exec(ctx, "SELECT pg_notify($1, $2)", channel, what)
	return err
}

// reader reads for a plan, within a transaction.
type reader struct {
	ctx context.Context // of the one call that it lives for
	tx  pgx.Tx
}

func (r reader) Revision() (int64, error) { return revision(r.ctx, r.tx) }

func (r reader) Rows(keys []v1.Key) ([]plan.Row, error) {
	kinds, namespaces, names := columnsOf(keys)
	return queryRows(r.ctx, r.tx, "SELECT "+columns+` FROM toolctl_objects o
		JOIN unnest($1::text[], $2::text[], $3::text[]) AS k (kind, namespace, name) USING (kind, namespace, name)`, kinds, namespaces, names)
}

func (r reader) Members(set string) (rows []plan.Row, err error) {
	return queryRows(r.ctx, r.tx, "SELECT "+columns+" FROM toolctl_objects WHERE set_name = $1", set)
}

func (r reader) Names(kind string) ([]v1.Key, error) {
	rows, err := r.tx.Query(r.ctx, "SELECT namespace, name FROM toolctl_objects WHERE kind = $1 ORDER BY namespace, name", kind)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (v1.Key, error) {
		key := v1.Key{Kind: kind}
		return key, row.Scan(&key.Namespace, &key.Name)
	})
}

// columns are the columns of a row, in the order of [fields] and [values].
const columns = "kind, namespace, name, set_name, uid, resource_version, generation, created, updated, manifest, origin"

func fields(r *plan.Row) []any {
	return []any{&r.Key.Kind, &r.Key.Namespace, &r.Key.Name, &r.Set, &r.UID, &r.Version, &r.Generation, &r.Created, &r.Updated, &r.Manifest, &r.Origin}
}

func values(r *plan.Row) []any {
	return []any{r.Key.Kind, r.Key.Namespace, r.Key.Name, r.Set, r.UID, r.Version, r.Generation, r.Created, r.Updated, r.Manifest, r.Origin}
}

func columnsOf(keys []v1.Key) (kinds, namespaces, names []string) {
	for _, k := range keys {
		kinds, namespaces, names = append(kinds, k.Kind), append(namespaces, k.Namespace), append(names, k.Name)
	}
	return kinds, namespaces, names
}

// carryOut writes what the plan says, within the transaction that made it.
func (s *Store) carryOut(ctx context.Context, tx pgx.Tx, p *plan.Plan) error {
	var b pgx.Batch
	for i := range p.Upserts {
		r := &p.Upserts[i]
		b.Queue("INSERT INTO toolctl_objects ("+columns+`, remote) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
			ON CONFLICT (kind, namespace, name) DO UPDATE SET set_name = excluded.set_name, uid = excluded.uid, resource_version = excluded.resource_version,
			generation = excluded.generation, created = excluded.created, updated = excluded.updated, manifest = excluded.manifest, origin = excluded.origin,
			remote = excluded.remote`, append(values(r), r.Remote)...)
	}
	if len(p.Gone) > 0 {
		kinds, namespaces, names := columnsOf(p.Gone)
		b.Queue(`DELETE FROM toolctl_objects o USING unnest($1::text[], $2::text[], $3::text[]) AS k (kind, namespace, name)
			WHERE o.kind = k.kind AND o.namespace = k.namespace AND o.name = k.name`, kinds, namespaces, names)
	}
	queueRevision(&b, p.Revision)
	kept := p.Kept(s.keep)
	for i := range kept {
		b.Queue("INSERT INTO toolctl_changes (type, "+columns+") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)", append([]any{string(kept[i].Type)}, values(&kept[i].Row)...)...)
	}
	if len(p.Log) > 0 {
		b.Queue("DELETE FROM toolctl_changes WHERE resource_version <= $1", p.Version-s.keep)
		b.Queue("SELECT pg_notify($1, 'objects')", channel)
	}
	if b.Len() == 0 {
		return nil
	}
	b.Queue(`UPDATE toolctl_revision SET value = $1, bytes = (SELECT coalesce(sum(octet_length(manifest) + octet_length(origin)), 0) FROM toolctl_objects)
		+ (SELECT coalesce(sum(octet_length(manifest) + octet_length(origin)), 0) FROM toolctl_revision_objects) WHERE name = 'objects'`, p.Version)
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return err
	}
	return s.room(ctx, tx)
}

// room refuses what made the store larger than it may be.
func (s *Store) room(ctx context.Context, tx pgx.Tx) error {
	if s.max == 0 {
		return nil
	}
	var bytes int64
	err := tx.QueryRow(ctx, `SELECT (SELECT bytes FROM toolctl_revision WHERE name = 'objects') + (SELECT bytes FROM toolctl_heads WHERE chain = $1)
		+ (SELECT coalesce(sum(octet_length(state)), 0) FROM toolctl_runs)`, auditChain).Scan(&bytes)
	if err == nil && bytes > s.max {
		err = fmt.Errorf("%w of %d bytes, nothing was changed: raise --store-max-bytes", store.ErrLimit, s.max)
	}
	return err
}
