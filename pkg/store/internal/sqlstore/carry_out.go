package sqlstore

import (
	"fmt"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store/internal/plan"
)

// Columns are the columns of a row, in the order of fields and values.
const Columns = "kind, namespace, name, set_name, uid, resource_version, generation, created, updated, manifest, origin"

// fields returns the destinations for scanning the columns.
func fields(r *plan.Row) []any {
	return []any{&r.Key.Kind, &r.Key.Namespace, &r.Key.Name, &r.Set, &r.UID, &r.Version, &r.Generation, &r.Created, &r.Updated, &r.Manifest, &r.Origin}
}

// values returns the values of the columns.
func values(r *plan.Row) []any {
	return []any{r.Key.Kind, r.Key.Namespace, r.Key.Name, r.Set, r.UID, r.Version, r.Generation, r.Created, r.Updated, r.Manifest, r.Origin}
}

// objects returns the rows of a query for Columns.
func objects(tx Tx, query string, args ...any) ([]plan.Row, error) {
	return all(tx, func(r Rows) (row plan.Row, err error) {
		err = r.Scan(fields(&row)...)
		return row, err
	}, query, args...)
}

// Rows implements [plan.Reader].
func (r reader) Rows(keys []v1.Key) (found []plan.Row, err error) {
	const most = 100 // keys per query
	for part := range slices.Chunk(keys, most) {
		var wanted []string
		var args []any
		for _, k := range part {
			wanted = append(wanted, fmt.Sprintf("($%d, $%d, $%d)", len(args)+1, len(args)+2, len(args)+3))
			args = append(args, k.Kind, k.Namespace, k.Name)
		}
		rows, err := objects(r, "SELECT "+Columns+" FROM (VALUES "+strings.Join(wanted, ", ")+
			") AS k JOIN toolctl_objects ON kind = k.column1 AND namespace = k.column2 AND name = k.column3", args...)
		if err != nil {
			return nil, err
		}
		found = append(found, rows...)
	}
	return found, nil
}

// each executes a statement for each item.
func each[T any](tx Tx, statement string, items []T, args func(*T) []any) error {
	if len(items) == 0 {
		return nil
	}
	return tx.Each(statement, func(yield func([]any) bool) {
		for i := range items {
			if !yield(args(&items[i])) {
				return
			}
		}
	})
}

// numbers returns the placeholders of n values.
func numbers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, ", $%d", i+1)
	}
	return b.String()[2:]
}

const putObject = `ON CONFLICT (kind, namespace, name) DO UPDATE SET set_name = excluded.set_name, uid = excluded.uid, resource_version = excluded.resource_version,
	generation = excluded.generation, created = excluded.created, updated = excluded.updated, manifest = excluded.manifest, origin = excluded.origin, remote = excluded.remote`

// carryOut writes a plan, in the transaction that made it.
func (m Methods) carryOut(tx Tx, p *plan.Plan) error {
	if len(p.Upserts)+len(p.Gone)+len(p.Log) == 0 && p.Revision == nil {
		return nil
	}
	err := each(tx, "INSERT INTO toolctl_objects ("+Columns+", remote) VALUES ("+numbers(12)+") "+putObject, p.Upserts,
		func(r *plan.Row) []any { return append(values(r), r.Remote) })
	if err == nil {
		err = each(tx, "DELETE FROM toolctl_objects WHERE kind = $1 AND namespace = $2 AND name = $3", p.Gone,
			func(k *v1.Key) []any { return []any{k.Kind, k.Namespace, k.Name} })
	}
	if err == nil && p.Revision != nil {
		err = addRevision(tx, p.Revision)
	}
	if err == nil && len(p.Log) > 0 {
		err = m.log(tx, p)
	}
	if err != nil {
		return err
	}
	if _, err := tx.Exec(m.d.SetRevision, p.Version); err != nil {
		return err
	}
	return tx.Room()
}

// log appends to the log of changes and compacts it.
func (m Methods) log(tx Tx, p *plan.Plan) error {
	err := each(tx, "INSERT INTO toolctl_changes (type, "+Columns+") VALUES ("+numbers(12)+")", p.Kept(m.keep),
		func(e *plan.Event) []any { return append([]any{string(e.Type)}, values(&e.Row)...) })
	if err != nil {
		return err
	}
	if _, err := tx.Exec("DELETE FROM toolctl_changes WHERE resource_version <= $1", p.Version-m.keep); err != nil {
		return err
	}
	return tx.Tell("objects")
}

func addRevision(tx Tx, rev *plan.Revision) error {
	err := each(tx, "UPDATE toolctl_revision_objects SET last = $1 WHERE set_name = $2 AND kind = $3 AND namespace = $4 AND name = $5 AND last = 0", rev.Ends,
		func(k *v1.Key) []any { return []any{rev.Number - 1, rev.Set, k.Kind, k.Namespace, k.Name} })
	if err != nil {
		return err
	}
	err = each(tx, "INSERT INTO toolctl_revision_objects ("+Columns+", digest, first) VALUES ("+numbers(13)+")", rev.Starts,
		func(s *plan.Member) []any { return append(values(&s.Row), s.Digest, s.First) })
	if err != nil {
		return err
	}
	if _, err := tx.Exec("INSERT INTO toolctl_revisions (set_name, number, record) VALUES ($1, $2, $3)", rev.Set, rev.Number, rev.Record); err != nil {
		return err
	}
	for _, old := range []string{
		"DELETE FROM toolctl_revisions WHERE set_name = $1 AND number < $2",
		"DELETE FROM toolctl_revision_objects WHERE set_name = $1 AND last > 0 AND last < $2",
	} {
		if _, err := tx.Exec(old, rev.Set, rev.Oldest); err != nil {
			return err
		}
	}
	return nil
}
