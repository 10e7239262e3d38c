package gateway

import (
	"context"
	"errors"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/store"
)

// Stored is the manifests that were applied to a store. With layout they keep their
// comments and the order of their keys.
func Stored(s store.Objects, layout bool) Source { return stored{s, store.ListOptions{Layout: layout}} }

type stored struct {
	store store.Objects
	opts  store.ListOptions
}

func (s stored) Load(ctx context.Context) (*manifest.Set, error) {
	list, err := s.store.List(ctx, s.opts)
	if err != nil {
		return nil, err
	}
	set := &manifest.Set{Objects: make([]v1.Object, len(list.Records))}
	for i, r := range list.Records {
		set.Objects[i] = r.Object
	}
	return set, nil
}

// Watch tells of the changes of other processes too.
func (s stored) Watch(ctx context.Context, missed func(error)) (<-chan struct{}, error) {
	told := newChanges()
	go func() {
		defer close(told)
		again(ctx, missed, func() error {
			list, err := s.store.List(ctx, store.ListOptions{Limit: 1})
			if err != nil {
				return err
			}
			told.signal()
			for _, err := range s.store.Watch(ctx, list.ResourceVersion) {
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

// again runs a watch of the store again whenever it ended, after a pause, until ctx ends.
// missed is told why it ended.
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
