package console

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/registry"
)

// Limits of the feed.
const (
	maxEvents   = 2000
	maxWatchers = 200
	ownWatchers = 0.25 // share of maxWatchers for one principal
	maxBehind   = 256  // queued events for a page; more are dropped
	maxInbox    = 4096 // queued events to be stored; more are dropped
)

// event is a call with its number in the feed.
type event struct {
	registry.CallEvent
	Number int64 `json:"number"`
}

// feed stores the recent calls and sends new ones to pages. Calls put their events in a channel and never
// wait: if the channel is full, the event is dropped.
type feed struct {
	now     func() time.Time
	pages   *admission.Quota // limits the open pages
	inbox   chan registry.CallEvent
	changed chan struct{} // signals that the pending calls may have changed
	dropped atomic.Int64

	mu       sync.Mutex
	events   []event // a ring once it is full
	count    int64   // number of all events so far; the next event is stored at count % maxEvents
	watchers map[*watcher]struct{}
	stats    map[toolKey]*series
	pending  string // ids of the pending calls in the last message to pages
}

type toolKey struct{ namespace, name string }

// watcher is one open page.
type watcher struct {
	events  chan event
	waiting chan []v1.PendingCall // the pending calls
}

func newFeed(now func() time.Time) *feed {
	return &feed{
		now: now, pages: admission.NewQuota("open pages", maxWatchers, ownWatchers), inbox: make(chan registry.CallEvent, maxInbox), changed: make(chan struct{}, 1),
		watchers: map[*watcher]struct{}{}, stats: map[toolKey]*series{}, pending: unknown,
	}
}

// called queues a finished call.
func (f *feed) called(e registry.CallEvent) {
	select {
	case f.inbox <- e:
	default:
		f.dropped.Add(1)
	}
}

// run stores calls until ctx ends. It handles calls that end at the same time together, so that it and the pages wake
// up less often.
func (f *feed) run(ctx context.Context) {
	const pause = 20 * time.Millisecond
	rest := time.NewTimer(0)
	defer rest.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-rest.C:
		}
		select {
		case <-ctx.Done():
			return
		case e := <-f.inbox:
			f.take(e)
		}
		rest.Reset(pause)
	}
}

// take stores a call and those queued behind it.
func (f *feed) take(e registry.CallEvent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for n := len(f.inbox); ; n-- {
		one := f.add(e)
		for w := range f.watchers {
			select {
			case w.events <- one:
			default: // the page is behind, and sees a gap in the numbers
			}
		}
		if n == 0 {
			return
		}
		e = <-f.inbox
	}
}

// add stores an event; the caller holds mu.
func (f *feed) add(e registry.CallEvent) event {
	f.count++
	one := event{e, f.count}
	if len(f.events) < maxEvents {
		f.events = append(f.events, one)
	} else {
		f.events[(f.count-1)%maxEvents] = one
	}
	f.measure(e)
	return one
}

// remember stores calls from before the start, the oldest first.
func (f *feed) remember(lines []v1.AuditRecord) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range lines {
		f.add(registry.CallEvent{AuditRecord: l})
	}
}

// last returns the newest matching events, at most most, newest first, and the number of all matching events.
func (f *feed) last(most int, fits func(*event) bool) (out []event, all int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for n := f.count; n > max(0, f.count-int64(len(f.events))); n-- {
		e := &f.events[(n-1)%maxEvents]
		if !fits(e) {
			continue
		}
		if all++; all <= most {
			out = append(out, *e)
		}
	}
	return out, all
}

// watch sends new events to a page of a principal until stop is called. The error says that too many
// pages are open.
func (f *feed) watch(principal string) (w *watcher, stop func(), err error) {
	if err := f.pages.Take(principal); err != nil {
		return nil, nil, &admission.RefusedError{Err: err}
	}
	w = &watcher{events: make(chan event, maxBehind), waiting: make(chan []v1.PendingCall, 1)}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watchers[w] = struct{}{}
	return w, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watchers, w)
		f.pages.Give(principal)
	}, nil
}

// watching returns the number of open pages.
func (f *feed) watching() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.watchers)
}

// waits signals that the pending calls changed.
func (f *feed) waits() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// unknown differs from every list of ids.
const unknown = "?"

// waiting sends the pending calls to the pages if they changed.
func (f *feed) waiting(all []v1.PendingCall) {
	var ids strings.Builder
	for i := range all {
		ids.WriteString(all[i].ID + " ")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if ids.String() == f.pending {
		return
	}
	f.pending = ids.String()
	for w := range f.watchers {
		select {
		case <-w.waiting: // an unread list is outdated
		default:
		}
		select {
		case w.waiting <- all:
		default:
		}
	}
}
