package sqlstore

import (
	"context"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/plan"
)

// Versions implements [plan.Reader].
func (r reader) Versions(set string) (map[v1.Key]int64, error) {
	versions := map[v1.Key]int64{}
	_, err := all(r, func(row Rows) (_ struct{}, err error) {
		var key v1.Key
		var at int64
		err = row.Scan(&key.Kind, &key.Namespace, &key.Name, &at)
		versions[key] = at
		return struct{}{}, err
	}, "SELECT kind, namespace, name, resource_version FROM toolctl_objects WHERE set_name = $1", set)
	return versions, err
}

// Latest implements [plan.Reader].
func (r reader) Latest(set string) (store.Revision, []plan.Member, error) {
	found, err := revisions(r, store.RevisionQuery{Set: set, Newest: true})
	if err != nil || len(found) == 0 {
		return store.Revision{}, nil, err
	}
	members, err := all(r, func(row Rows) (m plan.Member, err error) {
		err = row.Scan(&m.Key.Kind, &m.Key.Namespace, &m.Key.Name, &m.Version, &m.Digest)
		return m, err
	}, "SELECT kind, namespace, name, resource_version, digest FROM toolctl_revision_objects WHERE set_name = $1 AND last = 0", set)
	return found[0], members, err
}

// Revisions implements [store.Revisions].
func (m Methods) Revisions(ctx context.Context, q store.RevisionQuery) (found []store.Revision, err error) {
	err = m.b.Read(ctx, func(tx Tx) (err error) {
		found, err = revisions(tx, q)
		return err
	})
	return found, err
}

func revisions(tx Tx, q store.RevisionQuery) ([]store.Revision, error) {
	return all(tx, func(row Rows) (store.Revision, error) {
		var record []byte
		if err := row.Scan(&record); err != nil {
			return store.Revision{}, err
		}
		return plan.DecodeRevision(record)
	}, `SELECT record FROM toolctl_revisions r WHERE ($1 = '' OR set_name = $1) AND ($2 = 0 OR number = $2)
		AND (NOT $3 OR number = (SELECT max(number) FROM toolctl_revisions WHERE set_name = r.set_name)) ORDER BY set_name, number`, q.Set, q.Number, q.Newest)
}

// RevisionObjects implements [store.Revisions].
func (m Methods) RevisionObjects(ctx context.Context, set string, number int64) ([]store.Record, error) {
	var found []plan.Row
	err := m.b.Read(ctx, func(tx Tx) error {
		kept, err := revisions(tx, store.RevisionQuery{Set: set})
		if err != nil {
			return err
		}
		if set == "" || !slices.ContainsFunc(kept, func(r store.Revision) bool { return r.Number == number }) {
			return plan.Refuse(store.NoRevision(set, number, kept))
		}
		found, err = objects(tx, "SELECT "+Columns+" FROM toolctl_revision_objects WHERE set_name = $1 AND first <= $2 AND (last = 0 OR last >= $2)", set, number)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b plan.Row) int { return plan.Compare(a.Key, b.Key) })
	records, err := plan.DecodeAll(found)
	return records, m.b.Explain(ctx, err)
}
