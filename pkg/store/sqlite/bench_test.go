package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/sqlite"
)

// BenchmarkOpen opens and closes an up-to-date store of 1,000 tools, which every short command does.
func BenchmarkOpen(b *testing.B) {
	path := filled(b, 1000)
	for b.Loop() {
		st, err := sqlite.OpenStore(b.Context(), path, store.Options{})
		if err != nil {
			b.Fatal(err)
		}
		st.Close()
	}
}

// BenchmarkList1000 lists 1,000 tools; its floor is the bare query for the same rows.
func BenchmarkList1000(b *testing.B) {
	path := filled(b, 1000)
	b.Run("list", func(b *testing.B) {
		st := open(b, path)
		for b.Loop() {
			list, err := st.List(b.Context(), store.ListOptions{})
			if err != nil || len(list.Records) != 1000 {
				b.Fatal(len(list.Records), err)
			}
		}
	})
	b.Run("floor-query", func(b *testing.B) {
		db, err := sql.Open("sqlite", path)
		if err != nil {
			b.Fatal(err)
		}
		defer db.Close()
		for b.Loop() {
			rows, err := db.QueryContext(b.Context(), "SELECT manifest, origin FROM objects ORDER BY kind, namespace, name")
			if err != nil {
				b.Fatal(err)
			}
			var manifest, origin sql.RawBytes
			n := 0
			for rows.Next() {
				if err := rows.Scan(&manifest, &origin); err != nil {
					b.Fatal(err)
				}
				n++
			}
			if n != 1000 || rows.Err() != nil {
				b.Fatal(n, rows.Err())
			}
		}
	})
}

func BenchmarkApply1000(b *testing.B) {
	objects := tools(1000, "a")
	b.Run("created", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			st := create(b, filepath.Join(b.TempDir(), "state.db"))
			b.StartTimer()
			if _, err := st.Apply(b.Context(), objects, store.ApplyOptions{Set: "s"}); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			st.Close()
			b.StartTimer()
		}
	})
	b.Run("configured", func(b *testing.B) {
		st := open(b, filled(b, 1000))
		for i := 0; b.Loop(); i++ {
			b.StopTimer()
			next := tools(1000, fmt.Sprint(i))
			b.StartTimer()
			if _, err := st.Apply(b.Context(), next, store.ApplyOptions{Set: "s"}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("unchanged", func(b *testing.B) {
		st := open(b, filled(b, 1000))
		for b.Loop() {
			if _, err := st.Apply(b.Context(), tools(1000, "a"), store.ApplyOptions{Set: "s"}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkReserve reserves two counters, as a call under a common policy does.
// The floor is the bare transaction with one statement.
func BenchmarkReserve(b *testing.B) {
	counters := []v1.Counter{{Key: "p|total|s", Limit: 1 << 40}, {Key: "p|limits[0]|s", Limit: 1 << 40, Window: time.Hour}}
	b.Run("reserve", func(b *testing.B) {
		st := open(b, filled(b, 1))
		for b.Loop() {
			if _, full, err := st.Reserve(b.Context(), counters); full != -1 || err != nil {
				b.Fatal(full, err)
			}
		}
	})
	b.Run("floor-transaction", func(b *testing.B) {
		db, err := sql.Open("sqlite", filled(b, 1)+"?_synchronous=NORMAL")
		if err != nil {
			b.Fatal(err)
		}
		defer db.Close()
		ctx := context.Background()
		c, err := db.Conn(ctx)
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		for b.Loop() {
			for _, q := range []string{"BEGIN IMMEDIATE", "INSERT INTO counters (key, used) VALUES ('k', 1) ON CONFLICT (key) DO UPDATE SET used = used + 1", "COMMIT"} {
				if _, err := c.ExecContext(ctx, q); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

// BenchmarkAppendAudit writes records one after the other and 16 at once, which share transactions. The floor is the
// bare transaction of a plain insert.
func BenchmarkAppendAudit(b *testing.B) {
	line := v1.AuditRecord{Time: time.Now(), CallID: "c", Tool: "get-weather", Namespace: "default", Args: []byte(`{"location":"Oslo"}`), Status: v1.StatusComplete}
	b.Run("one", func(b *testing.B) {
		st := open(b, filled(b, 1))
		for b.Loop() {
			if err := st.AppendAudit(b.Context(), line); err != nil {
				b.Fatal(err)
			}
		}
	})
	// This is the cost of a call: its record of intent, and the one with its outcome.
	b.Run("call", func(b *testing.B) {
		st := open(b, filled(b, 1))
		intent := line
		intent.Status = v1.StatusStarted
		for b.Loop() {
			for _, l := range []v1.AuditRecord{intent, line} {
				if err := st.AppendAudit(b.Context(), l); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("parallel", func(b *testing.B) {
		st := open(b, filled(b, 1))
		b.SetParallelism(8)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := st.AppendAudit(b.Context(), line); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
	b.Run("floor-transaction", func(b *testing.B) {
		db, err := sql.Open("sqlite", filled(b, 1)+"?_synchronous=NORMAL")
		if err != nil {
			b.Fatal(err)
		}
		defer db.Close()
		ctx := context.Background()
		c, err := db.Conn(ctx)
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		text := []byte(`{"call_id":"c","tool":"get-weather","namespace":"default","args":{"location":"Oslo"},"status":"complete"}`)
		for b.Loop() {
			for _, q := range []string{"BEGIN IMMEDIATE", "INSERT INTO audit (time, tool, session, status, record) VALUES (1, 'get-weather', '', 'complete', ?)", "COMMIT"} {
				var args []any
				if q[0] == 'I' {
					args = []any{text}
				}
				if _, err := c.ExecContext(ctx, q, args...); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
