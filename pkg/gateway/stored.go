package gateway

import (
	"context"
	"errors"
	"sync"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/store"
)

// Stored is a source of the manifests in a store. With layout they keep their comments and the order of their keys. The
// first load reads all manifests; later loads read the changes only, and return the same objects for the rest.
func Stored(s store.Objects, layout bool) Source {
	return &stored{store: s, opts: store.ListOptions{Layout: layout}}
}

type stored struct {
	store store.Objects
	opts  store.ListOptions

	mu      sync.Mutex
	objects []v1.Object // at resourceVersion at; nil to read everything
	at      int64
}

// manyWrite reports whether users of other programs may write the manifests.
func (s *stored) manyWrite() bool { return store.Shared(s.store) }

func (s *stored) Load(ctx context.Context) (*manifest.Set, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := store.ErrTooOld
	if s.objects != nil {
		err = s.catchUp(ctx)
	}
	if errors.Is(err, store.ErrTooOld) {
		err = s.readAll(ctx)
	}
	if err != nil {
		return nil, err
	}
	return &manifest.Set{Objects: s.objects}, nil
}

func (s *stored) readAll(ctx context.Context) error {
	list, err := s.store.List(ctx, s.opts)
	if err != nil {
		return err
	}
	s.at, s.objects = list.ResourceVersion, make([]v1.Object, len(list.Records))
	for i, r := range list.Records {
		s.objects[i] = r.Object
	}
	return nil
}

// catchUp reads the changes since the last load. Each change has its own resourceVersion. If a change is no longer in
// the store, the error is [store.ErrTooOld].
func (s *stored) catchUp(ctx context.Context) error {
	newest, err := s.store.Revision(ctx)
	if err != nil || newest == s.at {
		return err
	}
	var keys []v1.Key
	changed, at := map[v1.Key]v1.Object{}, s.at // nil for deleted objects
	for e, err := range s.store.Watch(ctx, s.at) {
		if err != nil {
			return err
		}
		key := e.Record.Key()
		keys = append(keys, key)
		if changed[key] = nil; e.Type != store.Deleted {
			if changed[key] = e.Record.Object; !s.opts.Layout {
				e.Record.Object.Head().Layout = nil
			}
		}
		if at = e.Record.ResourceVersion; at >= newest {
			break
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	next := make([]v1.Object, 0, len(s.objects)+len(changed))
	for _, o := range s.objects {
		if now, other := changed[o.Head().Key()]; other {
			delete(changed, o.Head().Key())
			o = now
		}
		if o != nil {
			next = append(next, o)
		}
	}
	for _, key := range keys {
		if o := changed[key]; o != nil {
			delete(changed, key)
			next = append(next, o)
		}
	}
	s.objects, s.at = next, at
	return nil
}

// forget makes the next load read everything.
func (s *stored) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects = nil
}

// Watch also reports changes by other processes.
func (s *stored) Watch(ctx context.Context, missed func(error)) (<-chan struct{}, error) {
	told := newChanges()
	go func() {
		defer close(told)
		again(ctx, missed, func() error {
			from, err := s.store.Revision(ctx)
			if err != nil {
				return err
			}
			told.signal()
			for _, err := range s.store.Watch(ctx, from) {
				if err != nil {
					s.forget() // the database may have been replaced
				}
				if errors.Is(err, store.ErrTooOld) {
					return nil
				}
				if err != nil {
					return err
				}
				told.signal()
			}
			return nil
		})
	}()
	return told, nil
}

// again restarts a watch of the store whenever it ends, after a pause, until ctx ends. It calls missed with the reason.
func again(ctx context.Context, missed func(error), watch func() error) {
	const pause = time.Second
	for ctx.Err() == nil {
		if err := watch(); err != nil && ctx.Err() == nil {
			missed(err)
		}
		wait := time.NewTimer(pause)
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
		}
	}
}
