package budget_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"toolctl.dev/toolctl/internal/budget"
)

func TestTakeWaitsUntilThereIsEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(64 << 20)
		first, err := b.Take(t.Context(), "", 50<<20)
		if err != nil {
			t.Fatal(err)
		}
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := b.Take(soon, "", 10<<20); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("a large one beside a large one: %v", err)
		}
		little, err := b.Take(t.Context(), "", 1<<20)
		if err != nil {
			t.Fatalf("a small one beside large ones: %v", err)
		}
		got := make(chan error)
		go func() {
			s, err := b.Take(t.Context(), "", 10<<20)
			s.Release()
			got <- err
		}()
		synctest.Wait()
		first.Shrink(1 << 20)
		if err := <-got; err != nil {
			t.Fatal(err)
		}
		first.Release()
		first.Release()
		little.Release()
		all, err := b.Take(t.Context(), "", 56<<20)
		if err != nil {
			t.Fatalf("after all was given back: %v", err)
		}
		all.Release()
		if _, err := b.Take(t.Context(), "", 57<<20); !errors.Is(err, budget.ErrTooLarge) {
			t.Fatalf("one that never fits: %v", err)
		}
	})
}

func TestNoBudgetHasNoBound(t *testing.T) {
	var b *budget.Budget
	s, err := b.Take(t.Context(), "", 1<<60)
	if err != nil {
		t.Fatal(err)
	}
	s.Shrink(1)
	s.Release()
	budget.Decoded(t.Context(), 5)
}

// A principal decodes large texts in turns, and does not delay others.
func TestLargeInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(1 << 30)
		var got []*budget.Share
		for range max(1, runtime.GOMAXPROCS(0)/2) {
			s, err := b.Take(t.Context(), "ann", 2<<20)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, s)
		}
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := b.Take(soon, "ann", 2<<20); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("one more: %v", err)
		}
		for _, other := range []struct {
			who string
			n   int64
		}{{"ann", 1 << 20}, {"bob", 2 << 20}, {"", 2 << 20}} {
			s, err := b.Take(t.Context(), other.who, other.n)
			if err != nil {
				t.Fatal(err)
			}
			s.Release()
		}
		got[0].Shrink(2 << 20) // decoded, as large as it was
		small, err := b.Take(t.Context(), "ann", 10)
		if err != nil {
			t.Fatal(err)
		}
		if err := budget.Hold(budget.With(t.Context(), small), 2<<20); err != nil {
			t.Fatal(err)
		}
		for _, s := range append(got, small) {
			s.Release()
			s.Release()
		}
		all, err := b.Take(t.Context(), "ann", 800<<20)
		if err != nil {
			t.Fatal(err)
		}
		all.Release()
	})
}

func TestHoldAndKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(64 << 20)
		share, err := b.Take(t.Context(), "", 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		ctx := budget.With(t.Context(), share)
		if err := budget.Hold(ctx, 40<<20); err != nil {
			t.Fatal(err)
		}
		if err := budget.Hold(ctx, 30<<20); err != nil { // the share already has them
			t.Fatal(err)
		}
		other, _ := b.Take(t.Context(), "", 1<<20)
		second := budget.With(t.Context(), other)
		soon, stop := context.WithTimeout(second, time.Second)
		defer stop()
		if err := budget.Hold(soon, 40<<20); !errors.Is(err, budget.ErrFull) {
			t.Fatalf("two that do not fit: %v", err)
		}
		if err := budget.Hold(second, 60<<20); !errors.Is(err, budget.ErrTooLarge) {
			t.Fatalf("one that never fits: %v", err)
		}
		gone, cancel := context.WithCancel(second)
		cancel()
		if err := budget.Hold(gone, 40<<20); !errors.Is(err, context.Canceled) {
			t.Fatalf("one that nobody waits for: %v", err)
		}
		if err := errors.Join(budget.Keep(ctx, 20<<20), budget.Keep(ctx, 20<<20)); err != nil {
			t.Fatal(err)
		}
		if err := budget.Keep(second, 30<<20); !errors.Is(err, budget.ErrKept) {
			t.Fatalf("more than is kept: %v", err)
		}
		share.Release()
		share.Release()
		if err := errors.Join(budget.Keep(second, 30<<20), budget.Hold(second, 40<<20)); err != nil {
			t.Fatalf("after it was given back: %v", err)
		}
		other.Release()
		all, err := b.Take(t.Context(), "", 56<<20)
		if err != nil {
			t.Fatalf("after all was given back: %v", err)
		}
		all.Release()
		if err := errors.Join(budget.Hold(t.Context(), 1<<60), budget.Keep(t.Context(), 1<<40)); err != nil {
			t.Fatalf("without a share: %v", err)
		}
	})
}

func TestWeigh(t *testing.T) {
	objects := []byte(`[` + strings.Repeat(`{"id":1234},`, 240_000) + `{}]`)
	if mib := budget.Weigh(objects) >> 20; mib < 100 || mib > 224 {
		t.Errorf("240,000 small objects: %d MiB", mib)
	}
	text := []byte(`{"text":"` + strings.Repeat(`{,\"`, 1<<20) + `"}`)
	if n := budget.Weigh(text); n > int64(len(text))*5 {
		t.Errorf("a text of %d bytes: %d", len(text), n)
	}
	for _, broken := range []string{`{"a`, `"\`, strings.Repeat(`"\`, 5000)} {
		budget.Weigh([]byte(broken)) // returns
	}
}
