package storetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

func verified(t testing.TB, st store.Store, head string) store.AuditCheck {
	t.Helper()
	check, err := st.VerifyAudit(t.Context(), head)
	if err != nil {
		t.Fatal(err)
	}
	return check
}

func auditLine(i int) v1.AuditRecord {
	return v1.AuditRecord{
		Time: time.Date(2026, 11, 21, 7, 0, i, 0, time.UTC), CallID: fmt.Sprintf("c%d", i), Principal: "me", Session: "s", Tool: "get", Namespace: "default",
		Args: []byte(fmt.Sprintf(`{"n":%d,"t":"<&>"}`, i)), Status: v1.StatusComplete,
	}
}

// The chain follows its documentation, so that others can check it.
func testAuditChainRecipe(t *testing.T, backend Backend) {
	st := backend.open(t)
	hashes := []string{strings.Repeat("0", 64)}
	for i := 1; i <= 3; i++ {
		if err := st.AppendAudit(t.Context(), auditLine(i)); err != nil {
			t.Fatal(err)
		}
		head, err := st.AuditHead(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, head.Hash)
	}
	prev := make([]byte, 32)
	n := 0
	if err := st.EachAudit(t.Context(), store.AuditFilter{}, func(l store.AuditLine) error {
		n++
		sum := sha256.Sum256(append(prev, l.Text...))
		prev = sum[:]
		if l.ID != int64(n) || l.Hash != hex.EncodeToString(prev) {
			t.Errorf("line %d: hash %s, want %x", l.ID, l.Hash, prev)
		}
		if r, err := l.Record(); err != nil || r.CallID != fmt.Sprintf("c%d", n) {
			t.Errorf("line %d: %+v, %v", l.ID, r, err)
		}
		return nil
	}); err != nil || n != 3 {
		t.Fatal(n, err)
	}
	head, err := st.AuditHead(t.Context())
	if err != nil || head.Hash != hashes[3] || head.Lines != 3 {
		t.Errorf("head %+v, %v: want %s", head, err, hashes[3])
	}
	// A recorded head stays valid when records are added.
	for i, h := range hashes {
		if check := verified(t, st, strings.ToUpper(h)); check.Broken != nil || check.Lines != 3 || check.Head != hashes[3] || check.Unchained != 0 {
			t.Errorf("head %d: %+v", i, check)
		}
	}
	for _, bad := range []string{"x", hashes[1][:63], strings.Repeat("g", 64)} {
		if _, err := st.VerifyAudit(t.Context(), bad); !contains(err, "expected the 64 hexadecimal digits") {
			t.Errorf("head %q: %v", bad, err)
		}
	}
	if _, err := st.VerifyAudit(t.Context(), strings.Repeat("1", 64)); err != nil {
		t.Error(err)
	}
}

// More records than fit in a page are all read in order, and the reader may stop early.
func testEachAuditPages(t *testing.T, backend Backend) {
	st := backend.open(t)
	const lines = 1200
	ended := make(chan error, lines)
	for i := range lines {
		go func() { ended <- st.AppendAudit(t.Context(), auditLine(i)) }()
	}
	for range lines {
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	stop := errors.New("enough")
	for _, tc := range []struct {
		name        string
		filter      store.AuditFilter
		stop        int64
		first, last int64
	}{
		{name: "all", first: 1, last: lines},
		{name: "the newest", filter: store.AuditFilter{Limit: 700}, first: 501, last: lines},
		{name: "stopped", stop: 600, first: 1, last: 600},
	} {
		t.Run(tc.name, func(t *testing.T) {
			next := tc.first
			err := st.EachAudit(t.Context(), tc.filter, func(l store.AuditLine) error {
				if l.ID != next {
					t.Fatalf("line %d, want %d", l.ID, next)
				}
				if next++; l.ID == tc.stop {
					return stop
				}
				return nil
			})
			if next != tc.last+1 || tc.stop > 0 != errors.Is(err, stop) || tc.stop == 0 && err != nil {
				t.Errorf("up to %d, %v", next-1, err)
			}
		})
	}
	if check := verified(t, st, ""); check.Broken != nil || check.Lines != lines {
		t.Errorf("%+v", check)
	}
}

// testAuditIsOneChain: the records of concurrent writers form one chain.
func testAuditIsOneChain(t *testing.T, backend Backend) {
	const writers, each = 16, 20
	disk := backend.New(t)
	stores := []store.Store{open(t, disk), open(t, disk)}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if err := stores[w%2].AppendAudit(t.Context(), auditLine(w*each+i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if check := verified(t, stores[0], ""); check.Broken != nil || check.Lines != writers*each {
		t.Errorf("%+v", check)
	}
}

func testFollowAudit(t *testing.T, backend Backend) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	disk := backend.New(t)
	st := openWith(t, disk, store.Options{WatchInterval: time.Millisecond})
	writer := open(t, disk)
	const lines = 5
	if err := writer.AppendAudit(ctx, auditLine(0)); err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	var got []int64
	err := st.FollowAudit(ctx, store.AuditFilter{}, func(part []store.AuditLine) error {
		for _, l := range part {
			got = append(got, l.ID)
		}
		if len(got) == lines {
			return enough
		}
		return writer.AppendAudit(ctx, auditLine(len(got)))
	})
	if !errors.Is(err, enough) || !slices.Equal(got, []int64{1, 2, 3, 4, 5}) {
		t.Errorf("lines %d, %v", got, err)
	}
}

func testPruneAudit(t *testing.T, backend Backend) {
	st := backend.open(t)
	for i := range 6 {
		l := auditLine(i)
		if i == 1 {
			l.Status = v1.StatusStarted // its outcome is never written
		}
		if err := st.AppendAudit(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	if settled, err := store.ListAudit(t.Context(), st, store.AuditFilter{Settled: true}); err != nil || len(settled) != 6 {
		t.Errorf("%d lines, %v: an intent without an outcome is listed", len(settled), err)
	}
	before := auditLine(4).Time
	if _, err := st.PruneAudit(t.Context(), store.PruneOptions{Before: time.Now().Add(time.Hour)}); !contains(err, "expected a time in the past") {
		t.Errorf("the future: %v", err)
	}
	dry, err := st.PruneAudit(t.Context(), store.PruneOptions{Before: before, By: "ann", DryRun: true})
	if err != nil || verified(t, st, "").Lines != 6 {
		t.Fatal(dry, err)
	}
	p, err := st.PruneAudit(t.Context(), store.PruneOptions{Before: before, By: "ann"})
	if err != nil || p != dry || p.Lines != 4 || p.Kept != 2 || p.Start != 5 || len(p.Hash) != 64 {
		t.Fatalf("pruned %+v, %v; dry %+v", p, err, dry)
	}
	if check := verified(t, st, p.Hash); check.Broken != nil || check.Lines != 3 || check.Pruned != 4 {
		t.Errorf("the chain from its new start: %+v", check)
	}
	lines, err := store.ListAudit(t.Context(), st, store.AuditFilter{})
	if err != nil || len(lines) != 3 || lines[2].Change == nil || lines[2].Change.Command != "audit prune" || lines[2].Principal != "ann" {
		t.Errorf("%+v, %v", lines, err)
	}
}

// testPruneAuditByTime: records are removed by their times, wherever they are, because clocks differ and jump; the
// remaining records can be verified.
func testPruneAuditByTime(t *testing.T, backend Backend) {
	st := backend.open(t)
	// The minutes of the records: two clocks are ahead, one is far behind, and an outcome has an earlier time than its
	// call.
	minutes := []int{1, 2, 50, 3, 4, 51, 52, 5, 53, 1, 54}
	start := time.Now().Add(-24 * time.Hour).UTC()
	for i, m := range minutes {
		l := auditLine(i)
		l.Time = start.Add(time.Duration(m) * time.Minute)
		switch i {
		case 2: // its outcome is record 4, which is older
			l.CallID, l.Status = "jumped", v1.StatusStarted
		case 3:
			l.CallID = "jumped"
		case 7:
			l.CallID, l.Status = "gone", v1.StatusStarted
		}
		if err := st.AppendAudit(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	ids := func() (got []int64) {
		t.Helper()
		if err := st.EachAudit(t.Context(), store.AuditFilter{}, func(l store.AuditLine) error { got = append(got, l.ID); return nil }); err != nil {
			t.Fatal(err)
		}
		return got
	}
	prune := func(minute int) store.AuditPrune {
		t.Helper()
		opts := store.PruneOptions{Before: start.Add(time.Duration(minute) * time.Minute), By: "ann", DryRun: true}
		dry, err := st.PruneAudit(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		opts.DryRun = false
		p, err := st.PruneAudit(t.Context(), opts)
		if err != nil || p != dry {
			t.Fatalf("pruned %+v, %v; dry %+v", p, err, dry)
		}
		return p
	}
	if p := prune(10); p.Lines != 6 || p.Kept != 5 || p.Start != 3 || len(p.Hash) != 64 {
		t.Errorf("%+v", p)
	}
	if got := ids(); !slices.Equal(got, []int64{3, 6, 7, 9, 11, 12}) {
		t.Errorf("lines %d", got)
	}
	if check := verified(t, st, ""); check.Broken != nil || check.Lines != 6 || check.Pruned != 6 {
		t.Errorf("%+v, %v", check, check.Broken)
	}
	if got, err := store.ListAudit(t.Context(), st, store.AuditFilter{Limit: 4, Since: start}); err != nil || len(got) != 4 || got[3].Change.Holes != 3 {
		t.Errorf("the newest: %+v, %v", got, err)
	}
	if p := prune(10); p.Lines != 0 || p.Kept != 6 {
		t.Errorf("again: %+v", p)
	}
	if _, ok := st.(store.Copier); ok {
		twin := backend.open(t)
		if err := store.Copy(t.Context(), twin, st); err != nil {
			t.Fatal(err)
		}
		if check, same := verified(t, twin, ""), verified(t, st, ""); check != same {
			t.Errorf("the copy: %+v, want %+v", check, same)
		}
	}
	// The records between are removed later, and so is the record of the first prune when it is old itself.
	if p := prune(52); p.Lines != 2 || p.Kept != 4 || p.Start != 7 {
		t.Errorf("%+v", p)
	}
	if check := verified(t, st, ""); check.Broken != nil || check.Lines != 5 || check.Pruned != 8 {
		t.Errorf("%+v, %v", check, check.Broken)
	}
	if err := st.AppendAudit(t.Context(), auditLine(1)); err != nil {
		t.Fatal(err)
	}
	if p := prune(60); p.Lines != 4 || p.Kept != 2 || p.Start != 12 {
		t.Errorf("%+v", p)
	}
	if check := verified(t, st, ""); check.Broken != nil || check.Lines != 3 || check.Pruned != 12 {
		t.Errorf("%+v, %v", check, check.Broken)
	}
}
