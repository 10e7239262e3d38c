package postgres_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/postgres"
)

// replicas opens a store three times, as three gateways do. Counts and audit records wait for the disk no more than in
// an SQLite store.
func replicas(b *testing.B) []*postgres.Store {
	dsn := newStore(b)
	sep := "?"
	if strings.Contains(dsn, "?") {
		sep = "&"
	}
	var all []*postgres.Store
	for range 3 {
		all = append(all, open(b, dsn+sep+"synchronous_commit=off", store.Options{}))
	}
	return all
}

// flight calls do b.N times, 64 at once, and reports the calls per second and the 99th percentile of their durations.
func flight(b *testing.B, do func(worker int) error) {
	const inFlight = 64
	work := make(chan struct{})
	took := make([][]time.Duration, inFlight)
	var all sync.WaitGroup
	for w := range inFlight {
		all.Go(func() {
			for range work {
				began := time.Now()
				if err := do(w); err != nil {
					b.Error(err)
				}
				took[w] = append(took[w], time.Since(began))
			}
		})
	}
	b.ResetTimer()
	for range b.N {
		work <- struct{}{}
	}
	close(work)
	all.Wait()
	b.StopTimer()
	each := slices.Concat(took...)
	slices.Sort(each)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "op/s")
	b.ReportMetric(float64(each[(len(each)-1)*99/100].Microseconds())/1000, "p99-ms")
}

// BenchmarkReserve reserves one counter, of which there is one row, from three stores.
func BenchmarkReserve(b *testing.B) {
	all := replicas(b)
	counters := []v1.Counter{{Key: "p|total|s", Limit: 1 << 40}}
	flight(b, func(w int) error {
		_, _, err := all[w%len(all)].Reserve(b.Context(), counters)
		return err
	})
}

// BenchmarkAppendAudit writes lines of one chain from three stores.
func BenchmarkAppendAudit(b *testing.B) {
	all := replicas(b)
	line := v1.AuditRecord{Time: time.Now(), CallID: "c", Tool: "get-weather", Namespace: "default", Args: []byte(`{"location":"Oslo"}`), Status: v1.StatusComplete}
	flight(b, func(w int) error { return all[w%len(all)].AppendAudit(b.Context(), line) })
}
