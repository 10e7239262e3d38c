package sqlstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"toolctl.dev/toolctl/pkg/store"
)

// Vectors implements [store.Vectors].
func (m Methods) Vectors(ctx context.Context, keys []string) (found map[string][]byte, err error) {
	if err := store.CheckVectorBatch(len(keys)); err != nil || len(keys) == 0 {
		return nil, err
	}
	places, args := make([]string, len(keys)), make([]any, len(keys))
	for i, k := range keys {
		places[i], args[i] = fmt.Sprintf("$%d", i+1), k
	}
	err = m.b.Read(ctx, func(tx Tx) error {
		found = make(map[string][]byte, len(keys))
		_, err := all(tx, func(row Rows) (_ struct{}, err error) {
			var key string
			var vector []byte
			err = row.Scan(&key, &vector)
			found[key] = vector
			return struct{}{}, err
		}, "SELECT key, vector FROM toolctl_vectors WHERE key IN ("+strings.Join(places, ", ")+")", slices.Clone(args)...)
		return err
	})
	return found, err
}

// PutVectors implements [store.Vectors].
func (m Methods) PutVectors(ctx context.Context, vectors map[string][]byte) error {
	if err := store.CheckVectorBatch(len(vectors)); err != nil || len(vectors) == 0 {
		return err
	}
	now, err := m.b.Now(ctx)
	if err != nil {
		return err
	}
	return m.b.Write(ctx, func(tx Tx) error {
		if err := tx.Lock("vectors"); err != nil { // two writers would wait for each other's rows
			return err
		}
		if err := tx.Each(`INSERT INTO toolctl_vectors (key, vector, written) VALUES ($1, $2, $3)
			ON CONFLICT (key) DO UPDATE SET vector = excluded.vector, written = excluded.written`, func(yield func([]any) bool) {
			for _, key := range slices.Sorted(maps.Keys(vectors)) {
				if !yield([]any{key, vectors[key], now.UnixMicro()}) {
					return
				}
			}
		}); err != nil {
			return err
		}
		_, err := tx.Exec(`DELETE FROM toolctl_vectors WHERE key IN
			(SELECT key FROM toolctl_vectors ORDER BY written DESC, key LIMIT $1 OFFSET $2)`, store.MaxVectorBatch, store.MaxVectors)
		return err
	})
}
