package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/plan"
)

// Versions implements [plan.Reader].
func (r reader) Versions(set string) (map[v1.Key]int64, error) {
	rows, err := r.tx.Query(r.ctx, "SELECT kind, namespace, name, resource_version FROM toolctl_objects WHERE set_name = $1", set)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	versions := map[v1.Key]int64{}
	for rows.Next() {
		var key v1.Key
		var at int64
		if err := rows.Scan(&key.Kind, &key.Namespace, &key.Name, &at); err != nil {
			return nil, err
		}
		versions[key] = at
	}
	return versions, rows.Err()
}

// Latest implements [plan.Reader].
func (r reader) Latest(set string) (store.Revision, []plan.Member, error) {
	found, err := queryRevisions(r.ctx, r.tx, store.RevisionQuery{Set: set, Newest: true})
	if err != nil || len(found) == 0 {
		return store.Revision{}, nil, err
	}
	rows, err := r.tx.Query(r.ctx, "SELECT kind, namespace, name, resource_version, digest FROM toolctl_revision_objects WHERE set_name = $1 AND last = 0", set)
	if err != nil {
		return store.Revision{}, nil, err
	}
	members, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (m plan.Member, err error) {
		err = row.Scan(&m.Key.Kind, &m.Key.Namespace, &m.Key.Name, &m.Version, &m.Digest)
		return m, err
	})
	return found[0], members, err
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
		b.Queue("INSERT INTO toolctl_revision_objects ("+columns+", digest, first) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)", append(values(&m.Row), m.Digest, m.First)...)
	}
	b.Queue("INSERT INTO toolctl_revisions (set_name, number, record) VALUES ($1, $2, $3)", rev.Set, rev.Number, rev.Record)
	b.Queue("DELETE FROM toolctl_revisions WHERE set_name = $1 AND number < $2", rev.Set, rev.Oldest)
	b.Queue("DELETE FROM toolctl_revision_objects WHERE set_name = $1 AND last > 0 AND last < $2", rev.Set, rev.Oldest)
}

// Revisions implements [store.Revisions].
func (s *Store) Revisions(ctx context.Context, q store.RevisionQuery) (all []store.Revision, err error) {
	err = s.read(ctx, func(tx pgx.Tx) (err error) {
		all, err = queryRevisions(ctx, tx, q)
		return err
	})
	return all, err
}

func queryRevisions(ctx context.Context, tx pgx.Tx, q store.RevisionQuery) ([]store.Revision, error) {
	rows, err := tx.Query(ctx, `SELECT record FROM toolctl_revisions r WHERE ($1 = '' OR set_name = $1) AND ($2 = 0 OR number = $2)
		AND (NOT $3 OR number = (SELECT max(number) FROM toolctl_revisions WHERE set_name = r.set_name)) ORDER BY set_name, number`, text(q.Set), q.Number, q.Newest)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (store.Revision, error) {
		var record []byte
		if err := row.Scan(&record); err != nil {
			return store.Revision{}, err
		}
		return plan.DecodeRevision(record)
	})
}

// RevisionObjects implements [store.Revisions].
func (s *Store) RevisionObjects(ctx context.Context, set string, number int64) ([]store.Record, error) {
	var found []plan.Row
	err := s.read(ctx, func(tx pgx.Tx) error {
		kept, err := queryRevisions(ctx, tx, store.RevisionQuery{Set: set})
		if err != nil {
			return err
		}
		if set == "" || !slices.ContainsFunc(kept, func(r store.Revision) bool { return r.Number == number }) {
			return plan.Refuse(store.NoRevision(set, number, kept))
		}
		found, err = queryRows(ctx, tx, "SELECT "+columns+" FROM toolctl_revision_objects WHERE set_name = $1 AND first <= $2 AND (last = 0 OR last >= $2)", set, number)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b plan.Row) int { return plan.Compare(a.Key, b.Key) })
	records, err := plan.DecodeAll(found)
	return records, s.explain(ctx, err)
}
