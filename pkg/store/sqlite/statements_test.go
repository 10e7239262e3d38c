package sqlite_test

import (
	"fmt"
	"path/filepath"
	"testing"
)

// A connection caches its statements correctly: one used twice at once, more than fit, one that failed, and one whose
// tables changed.
func TestStatementsAreKept(t *testing.T) {
	st := create(t, filepath.Join(t.TempDir(), "state.db"))
	c, err := st.DB().Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const query = "SELECT column1 FROM (VALUES (1), (2), (3))"
	pairs := 0
	for range 2 {
		outer, err := c.QueryContext(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		defer outer.Close()
		for outer.Next() {
			inner, err := c.QueryContext(t.Context(), query)
			if err != nil {
				t.Fatal(err)
			}
			defer inner.Close()
			for inner.Next() {
				pairs++
			}
			if err := inner.Err(); err != nil {
				t.Fatal(err)
			}
		}
		if err := outer.Err(); err != nil {
			t.Fatal(err)
		}
	}
	if pairs != 18 {
		t.Errorf("%d pairs", pairs)
	}
	for i := range 200 {
		var got int
		if err := c.QueryRowContext(t.Context(), fmt.Sprintf("SELECT %d", i%100)).Scan(&got); err != nil || got != i%100 {
			t.Fatal(got, err)
		}
	}
	const insert = "INSERT INTO counters (key, used) VALUES (?, ?)"
	for i, works := range []bool{true, false, true} {
		_, err := c.ExecContext(t.Context(), insert, []string{"a", "a", "b"}[i], i)
		if (err == nil) != works {
			t.Errorf("%d: %v", i, err)
		}
	}
	if _, err := c.ExecContext(t.Context(), "ALTER TABLE counters ADD COLUMN more INTEGER NOT NULL DEFAULT 7"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ExecContext(t.Context(), insert, "c", 1); err != nil {
		t.Error(err)
	}
	var more int
	if err := c.QueryRowContext(t.Context(), "SELECT more FROM counters WHERE key = 'c'").Scan(&more); err != nil || more != 7 {
		t.Error(more, err)
	}
}
