package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/plan"
	"toolctl.dev/toolctl/pkg/store/internal/sqlstore"
)

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
		b.Queue("INSERT INTO toolctl_objects ("+sqlstore.Columns+`, remote) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
			ON CONFLICT (kind, namespace, name) DO UPDATE SET set_name = excluded.set_name, uid = excluded.uid, resource_version = excluded.resource_version,
			generation = excluded.generation, created = excluded.created, updated = excluded.updated, manifest = excluded.manifest, origin = excluded.origin,
			remote = excluded.remote`, append(sqlstore.Values(r), r.Remote)...)
	}
	if len(p.Gone) > 0 {
		kinds, namespaces, names := columnsOf(p.Gone)
		b.Queue(`DELETE FROM toolctl_objects o USING unnest($1::text[], $2::text[], $3::text[]) AS k (kind, namespace, name)
			WHERE o.kind = k.kind AND o.namespace = k.namespace AND o.name = k.name`, kinds, namespaces, names)
	}
	queueRevision(&b, p.Revision)
	kept := p.Kept(s.keep)
	for i := range kept {
		b.Queue("INSERT INTO toolctl_changes (type, "+sqlstore.Columns+") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)", append([]any{string(kept[i].Type)}, sqlstore.Values(&kept[i].Row)...)...)
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

// queueRevision adds what writes a revision to the statements of its apply.
func queueRevision(b *pgx.Batch, rev *plan.Revision) {
	if rev == nil {
		return
	}
	if len(rev.Ends) > 0 {
		kinds, namespaces, names := columnsOf(rev.Ends)
		b.Queue(`UPDATE toolctl_revision_objects o SET last = $2 FROM unnest($3::text[], $4::text[], $5::text[]) AS k (kind, namespace, name)
			WHERE o.set_name = $1 AND o.kind = k.kind AND o.namespace = k.namespace AND o.name = k.name AND o.last = 0`, rev.Set, rev.Number-1, kinds, namespaces, names)
	}
	for i := range rev.Starts {
		m := &rev.Starts[i]
		b.Queue("INSERT INTO toolctl_revision_objects ("+sqlstore.Columns+", digest, first) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)", append(sqlstore.Values(&m.Row), m.Digest, m.First)...)
	}
	b.Queue("INSERT INTO toolctl_revisions (set_name, number, record) VALUES ($1, $2, $3)", rev.Set, rev.Number, rev.Record)
	b.Queue("DELETE FROM toolctl_revisions WHERE set_name = $1 AND number < $2", rev.Set, rev.Oldest)
	b.Queue("DELETE FROM toolctl_revision_objects WHERE set_name = $1 AND last > 0 AND last < $2", rev.Set, rev.Oldest)
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
