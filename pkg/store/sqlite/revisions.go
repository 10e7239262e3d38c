package sqlite

import (
	"context"
	"database/sql"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/plan"
)

// Versions implements [plan.Reader].
func (r reader) Versions(set string) (map[v1.Key]int64, error) {
	rows, err := r.c.QueryContext(r.ctx, "SELECT kind, namespace, name, resource_version FROM objects WHERE set_name = ?", set)
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
	found, err := queryRevisions(r.ctx, r.c, store.RevisionQuery{Set: set, Newest: true})
	if err != nil || len(found) == 0 {
		return store.Revision{}, nil, err
	}
	rows, err := r.c.QueryContext(r.ctx, "SELECT kind, namespace, name, resource_version, digest FROM revision_objects WHERE set_name = ? AND last = 0", set)
	if err != nil {
		return store.Revision{}, nil, err
	}
	defer rows.Close()
	var members []plan.Member
	for rows.Next() {
		var m plan.Member
		if err := rows.Scan(&m.Key.Kind, &m.Key.Namespace, &m.Key.Name, &m.Version, &m.Digest); err != nil {
			return store.Revision{}, nil, err
		}
		members = append(members, m)
	}
	return found[0], members, rows.Err()
}

// addRevision writes a revision within the transaction of its apply.
func addRevision(ctx context.Context, c *sql.Conn, rev *plan.Revision) error {
	if rev == nil {
		return nil
	}
	err := each(ctx, c, "UPDATE revision_objects SET last = ? WHERE set_name = ? AND kind = ? AND namespace = ? AND name = ? AND last = 0", rev.Ends,
		func(k v1.Key) []any { return []any{rev.Number - 1, rev.Set, k.Kind, k.Namespace, k.Name} })
	if err != nil {
		return err
	}
	err = each(ctx, c, "INSERT INTO revision_objects ("+columns+", digest, first) VALUES ("+marks(13)+")", rev.Starts,
		func(m plan.Member) []any { return append(values(&m.Row), m.Digest, m.First) })
	if err != nil {
		return err
	}
	if _, err := c.ExecContext(ctx, "INSERT INTO revisions (set_name, number, record) VALUES (?, ?, ?)", rev.Set, rev.Number, rev.Record); err != nil {
		return err
	}
	if _, err := c.ExecContext(ctx, "DELETE FROM revisions WHERE set_name = ? AND number < ?", rev.Set, rev.Oldest); err != nil {
		return err
	}
	_, err = c.ExecContext(ctx, "DELETE FROM revision_objects WHERE set_name = ? AND last > 0 AND last < ?", rev.Set, rev.Oldest)
	return err
}

// Revisions implements [store.Revisions].
func (s *Store) Revisions(ctx context.Context, q store.RevisionQuery) (all []store.Revision, err error) {
	err = s.read(ctx, func(c *sql.Conn) (err error) {
		all, err = queryRevisions(ctx, c, q)
		return err
	})
	return all, err
}

func queryRevisions(ctx context.Context, c *sql.Conn, q store.RevisionQuery) ([]store.Revision, error) {
	rows, err := c.QueryContext(ctx, `SELECT record FROM revisions r WHERE (?1 = '' OR set_name = ?1) AND (?2 = 0 OR number = ?2)
		AND (NOT ?3 OR number = (SELECT max(number) FROM revisions WHERE set_name = r.set_name)) ORDER BY set_name, number`, q.Set, q.Number, q.Newest)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []store.Revision
	for rows.Next() {
		var record []byte
		if err := rows.Scan(&record); err != nil {
			return nil, err
		}
		rev, err := plan.DecodeRevision(record)
		if err != nil {
			return nil, err
		}
		all = append(all, rev)
	}
	return all, rows.Err()
}

// RevisionObjects implements [store.Revisions].
func (s *Store) RevisionObjects(ctx context.Context, set string, number int64) ([]store.Record, error) {
	var found []plan.Row
	err := s.read(ctx, func(c *sql.Conn) error {
		found = nil
		kept, err := queryRevisions(ctx, c, store.RevisionQuery{Set: set})
		if err != nil {
			return err
		}
		if set == "" || !slices.ContainsFunc(kept, func(r store.Revision) bool { return r.Number == number }) {
			return plan.Refuse(store.NoRevision(set, number, kept))
		}
		return queryRows(ctx, c, &found, "SELECT "+columns+" FROM revision_objects WHERE set_name = ?1 AND first <= ?2 AND (last = 0 OR last >= ?2)", set, number)
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b plan.Row) int { return plan.Compare(a.Key, b.Key) })
	records, err := plan.DecodeAll(found)
	return records, s.explain(ctx, err)
}
