// Package footprint gives memory back to the system that a long-lived process has and does
// not need: pages of its own file that only its start touched, and what a load left in the heap.
package footprint

import (
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Started says that the start is over. On Linux the pages of the program's file that the start touched are
// given back: each package initializes itself and the runtime looks at all types, in all about two thirds of
// the file, and calls need a tenth. What is needed comes back from the system's cache, once.
func Started() { _ = dropProgram() } // it is only memory

const (
	// look is how often Idle looks.
	look = 2 * time.Second
	// idle is the part of one processor below which a process is idle.
	idle = 0.02
	// worth is what the heap has to have grown by since it was last given back, and a quarter of it at least.
	worth = 4 << 20
	// after is when it is given back once more, since what is kept for clients for a while is garbage by then.
	after = time.Minute
)

// Idle gives back what a load left in the heap, whenever the process has nothing to do after it. The
// collector runs when the heap has grown, so in a process that is idle it does not run for two
// minutes, and what it frees is kept for a while. The function that Idle returns ends that, and waits for its end.
func Idle() (end func()) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		t := time.NewTicker(look)
		defer t.Stop()
		w := watch{heap: heap()}
		for {
			select {
			case <-stop:
				return
			case now := <-t.C:
				if w.due(now, processorTime(), heap()) {
					debug.FreeOSMemory()
					w.heap = heap()
				}
			}
		}
	}()
	return func() { close(stop); <-done }
}

// watch is what was seen so far.
type watch struct {
	at   time.Time
	cpu  time.Duration
	heap int64     // after it was last given back
	more time.Time // when it is given back once more; zero when it is not
}

// due reports whether the heap should be given back now.
func (w *watch) due(now time.Time, cpu time.Duration, heap int64) bool {
	quiet := !w.at.IsZero() && cpu > 0 && float64(cpu-w.cpu) < idle*float64(now.Sub(w.at))
	w.at, w.cpu = now, cpu
	w.heap = min(w.heap, heap)
	switch {
	case !quiet:
		return false
	case heap-w.heap >= max(worth, w.heap/4):
		w.more = now.Add(after)
		return true
	case !w.more.IsZero() && now.After(w.more):
		w.more = time.Time{}
		return true
	}
	return false
}

// heap is how much memory of the system the heap has.
func heap() (n int64) {
	all := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/free:bytes"}}
	metrics.Read(all)
	for _, s := range all {
		n += int64(s.Value.Uint64())
	}
	return n
}
