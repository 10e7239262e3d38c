package sqlstore

import (
	"context"
	"time"

	"toolctl.dev/toolctl/pkg/store"
)

const overrideColumns = "SELECT version, namespace, tool, description, author, time FROM toolctl_overrides "

// Overrides implements [store.Overrides].
func (m Methods) Overrides(ctx context.Context) ([]store.Override, error) {
	return m.overrides(ctx, overrideColumns+`o
		WHERE description <> '' AND version = (SELECT max(version) FROM toolctl_overrides WHERE namespace = o.namespace AND tool = o.tool)
		ORDER BY namespace, tool`)
}

// OverrideHistory implements [store.Overrides].
func (m Methods) OverrideHistory(ctx context.Context, namespace, tool string) ([]store.Override, error) {
	return m.overrides(ctx, overrideColumns+"WHERE tool = $1 AND ($2 = '' OR namespace = $2) ORDER BY version DESC", tool, namespace)
}

func (m Methods) overrides(ctx context.Context, query string, args ...any) (found []store.Override, err error) {
	err = m.b.Read(ctx, func(tx Tx) error {
		found, err = all(tx, func(row Rows) (o store.Override, err error) {
			var at int64
			err = row.Scan(&o.Version, &o.Namespace, &o.Tool, &o.Description, &o.Author, &at)
			o.Time = time.UnixMicro(at).UTC()
			return o, err
		}, query, args...)
		return err
	})
	return found, err
}

// OverrideBefore is the version of the newest override of a tool, 0 without one.
func OverrideBefore(tx Tx, o *store.Override) (version int64, err error) {
	err = One(tx, []any{&version}, "SELECT coalesce(max(version), 0) FROM toolctl_overrides WHERE namespace = $1 AND tool = $2", o.Namespace, o.Tool)
	return version, err
}
