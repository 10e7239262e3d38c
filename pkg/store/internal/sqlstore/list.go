package sqlstore

import (
	"context"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/plan"
)

// List implements [store.Objects].
func (m Methods) List(ctx context.Context, opts store.ListOptions) (store.List, error) {
	if err := opts.Check(); err != nil {
		return store.List{}, err
	}
	kinds := v1.Kinds()
	if opts.Kind != "" {
		kinds = []string{opts.Kind}
	}
	var out store.List
	var found []plan.Row
	err := m.b.Read(ctx, func(tx Tx) (err error) {
		out, found = store.List{}, nil
		if out.ResourceVersion, err = m.reader(tx).Revision(); err != nil {
			return err
		}
		// With one query per kind, the index returns the rows in order; the order of the kinds is not stored.
		for _, kind := range kinds {
			if err := addRows(tx, kind, opts, &out, &found); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return store.List{}, err
	}
	if out.Records, err = plan.Listed(found, opts); err != nil {
		return store.List{}, m.b.Explain(ctx, err)
	}
	return out, nil
}

// addRows reads the objects of one kind.
func addRows(tx Tx, kind string, opts store.ListOptions, l *store.List, found *[]plan.Row) error {
	c := condition{text: " FROM toolctl_objects WHERE true"}.and(" AND kind = %s", kind)
	for _, f := range []struct{ column, value string }{{"namespace", opts.Namespace}, {"set_name", opts.Set}, {"name", opts.Name}, {"remote", opts.Remote}} {
		if f.value != "" {
			c = c.and(" AND "+f.column+" = %s", f.value)
		}
	}
	if opts.Remote != "" {
		c.text += " AND remote <> ''" // matches the condition of the index
	}
	var total int
	if err := One(tx, []any{&total}, "SELECT count(*)"+c.text, c.args...); err != nil {
		return err
	}
	skip := max(opts.Offset-l.Total, 0)
	l.Total += total
	limit := total
	if opts.Limit > 0 {
		limit = opts.Limit - len(*found)
	}
	if limit <= 0 || skip >= total {
		return nil
	}
	c = c.and(" ORDER BY namespace, name LIMIT %s OFFSET %s", limit, skip)
	rows, err := objects(tx, "SELECT "+Columns+c.text, c.args...)
	*found = append(*found, rows...)
	return err
}
