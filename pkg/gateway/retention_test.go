package gateway_test

import (
	"testing"
	"testing/synctest"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/memory"
)

// TestAuditRetention: of two gateways on one store one removes old records, and the other one takes over when the first
// has ended.
func TestAuditRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const day = 24 * time.Hour
		st := memory.New(memory.Options{})
		defer st.Close()
		for _, age := range []time.Duration{7 * day, 6 * day, 4 * day, 1 * day} {
			if err := st.AppendAudit(t.Context(), v1.AuditRecord{Time: time.Now().Add(-age), Tool: "get", Status: v1.StatusComplete}); err != nil {
				t.Fatal(err)
			}
		}
		lines := func() (calls, prunes int) {
			t.Helper()
			all, err := store.ListAudit(t.Context(), st, store.AuditFilter{})
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range all {
				if l.Status == v1.StatusChanged {
					prunes++
				} else {
					calls++
				}
			}
			return calls, prunes
		}
		var served []*gateway.Gateway
		for range 2 {
			g, err := gateway.Open(t.Context(), gateway.Options{Store: st, AuditRetention: 5 * day})
			if err != nil {
				t.Fatal(err)
			}
			g.Handler()
			served = append(served, g)
		}
		synctest.Wait()
		if calls, prunes := lines(); calls != 2 || prunes != 1 {
			t.Errorf("%d lines, %d of prunes: want 2 and 1", calls, prunes)
		}
		time.Sleep(2 * day)
		synctest.Wait()
		if calls, prunes := lines(); calls != 1 || prunes != 2 {
			t.Errorf("two days later: %d lines, %d of prunes: want 1 and 2", calls, prunes)
		}
		if err := served[0].Close(); err != nil {
			t.Error(err)
		}
		time.Sleep(3 * day)
		synctest.Wait()
		if calls, _ := lines(); calls != 0 {
			t.Errorf("one gateway has ended: %d lines are left, want none", calls)
		}
		if err := served[1].Close(); err != nil {
			t.Error(err)
		}
		if check, err := st.VerifyAudit(t.Context(), ""); err != nil || check.Broken != nil {
			t.Errorf("%+v, %v", check, err)
		}
	})
}
