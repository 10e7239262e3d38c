package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/postgres"
)

// TestAuditIsReadByRanges: PostgreSQL reads only the audit records that are returned, and no page again for the pages
// after it.
func TestAuditIsReadByRanges(t *testing.T) {
	dsn := newStore(t)
	open(t, dsn, store.Options{})
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // it only read
	const lines = 20_000
	for _, q := range []string{
		fmt.Sprintf(`INSERT INTO toolctl_audit (chain, seq, time, tool, session, status, principal, record, hash)
			SELECT 'audit', i, i, 'get', 's', 'complete', 'me', '{"namespace":"default"}', '' FROM generate_series(1, %d) i`, lines),
		fmt.Sprintf("UPDATE toolctl_heads SET seq = %d", lines), "VACUUM ANALYZE toolctl_audit",
	} {
		if _, err := conn.Exec(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	// A server adds the rows that a connection read to its statistics when the connection ends.
	read := func(filter store.AuditFilter) (got, rows int64) {
		t.Helper()
		const sum = "SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE relid = 'toolctl_audit'::regclass"
		var before int64
		if err := conn.QueryRow(t.Context(), sum).Scan(&before); err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("counted-%d", time.Now().UnixNano())
		st, err := postgres.OpenStore(t.Context(), dsn+"&application_name="+name, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		err = st.EachAudit(t.Context(), filter, func(store.AuditLine) error { got++; return nil })
		if cerr := st.Close(); err != nil || cerr != nil {
			t.Fatal(err, cerr)
		}
		for there := true; there; {
			if err := conn.QueryRow(t.Context(), "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE application_name = $1)", name).Scan(&there); err != nil {
				t.Fatal(err)
			}
		}
		if err := conn.QueryRow(t.Context(), sum).Scan(&rows); err != nil {
			t.Fatal(err)
		}
		return got, rows - before
	}
	for _, tc := range []struct {
		name       string
		filter     store.AuditFilter
		want, most int64
	}{
		{"all", store.AuditFilter{}, lines, lines + 1000},
		{"settled", store.AuditFilter{Settled: true}, lines, lines + 1000},
		{"since", store.AuditFilter{Since: time.UnixMicro(lines/2 + 1)}, lines / 2, lines + 1000}, // the first record is searched once
		{"a pattern since", store.AuditFilter{Tool: "g*", Since: time.UnixMicro(lines/2 + 1)}, lines / 2, lines + 1000},
		{"none of a tool", store.AuditFilter{Tool: "x"}, 0, lines + 1000},
		{"after", store.AuditFilter{After: lines - 2000}, 2000, 3000},
		{"the newest", store.AuditFilter{Limit: 100, Settled: true}, 100, 1000},
	} {
		if got, rows := read(tc.filter); got != tc.want || rows > tc.most {
			t.Errorf("%s: %d lines of %d rows that were read, want %d of at most %d", tc.name, got, rows, tc.want, tc.most)
		} else {
			t.Logf("%s: %d lines of %d rows", tc.name, got, rows)
		}
	}
}
