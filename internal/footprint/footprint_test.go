package footprint

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDue(t *testing.T) {
	const second, mb = time.Second, 1 << 20
	w := watch{heap: 6 * mb}
	at, cpu := time.Unix(0, 0), time.Duration(1)
	for i, look := range []struct {
		cpu  time.Duration
		heap int64
		due  bool
	}{
		{0, 60 * mb, false},           // what was before is not known
		{second, 60 * mb, false},      // busy
		{second / 100, 9 * mb, false}, // idle, with little to give back
		{second / 100, 60 * mb, true},
		{second / 10, 60 * mb, false},
	} {
		at, cpu = at.Add(2*second), cpu+look.cpu
		if got := w.due(at, cpu, look.heap); got != look.due {
			t.Errorf("look %d: due is %t, want %t", i, got, look.due)
		}
	}
	w.heap = 10 * mb
	for i, look := range []struct {
		after time.Duration
		due   bool
	}{{30 * second, false}, {31 * second, true}, {61 * second, false}} { // what was kept for clients is garbage now
		at = at.Add(look.after)
		if got := w.due(at, cpu, 10*mb); got != look.due {
			t.Errorf("%d: due once more is %t, want %t", i, got, look.due)
		}
	}
	w.heap = 100 * mb
	if w.due(at.Add(2*second), cpu, 120*mb) {
		t.Error("a fifth of the heap is given back")
	}
	if w.due(at.Add(4*second), 0, 500*mb) {
		t.Error("the heap is given back where the processor time is not known")
	}
}

func TestIdleEnds(t *testing.T) {
	end := Idle()
	end()
}
