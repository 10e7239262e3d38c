package sqlstore

import (
	"context"
	"time"

	"toolctl.dev/toolctl/pkg/store"
)

// Turned implements [store.Conditions]. It writes only if a status changed.
func (m Methods) Turned(ctx context.Context, seen []store.Seen) (since []time.Time, err error) {
	var turned []store.Turn
	look := func(tx Tx) error {
		noted, err := turns(tx)
		since, turned = store.TurnsOf(noted, seen, time.Now())
		return err
	}
	if err := m.b.Read(ctx, look); err != nil || len(turned) == 0 {
		return since, err
	}
	err = m.b.Write(ctx, func(tx Tx) error {
		if err := tx.Lock("conditions"); err != nil {
			return err
		}
		if err := look(tx); err != nil { // another process may have stored it in the meantime
			return err
		}
		if _, err := tx.Exec("DELETE FROM toolctl_conditions WHERE uid NOT IN (SELECT uid FROM toolctl_objects)"); err != nil {
			return err
		}
		for _, t := range turned {
			_, err := tx.Exec(`INSERT INTO toolctl_conditions (uid, type, status, since) VALUES ($1, $2, $3, $4)
				ON CONFLICT (uid, type) DO UPDATE SET status = excluded.status, since = excluded.since`, t.UID, t.Type, t.Status, t.Since.UnixMicro())
			if err != nil {
				return err
			}
		}
		return nil
	})
	return since, err
}

func turns(tx Tx) ([]store.Turn, error) {
	return all(tx, func(row Rows) (t store.Turn, err error) {
		var at int64
		err = row.Scan(&t.UID, &t.Type, &t.Status, &at)
		t.Since = time.UnixMicro(at).UTC()
		return t, err
	}, "SELECT uid, type, status, since FROM toolctl_conditions")
}
