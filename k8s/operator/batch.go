package operator

import (
	"context"
	"errors"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

// maxBatch is how many objects one transaction takes.
const maxBatch = 512

// A job is one object that is to be applied or removed.
type job struct {
	key    v1.Key
	object v1.Object // nil: it is to be removed
	done   chan outcome
}

// An outcome is what became of a job.
type outcome struct {
	change store.Change
	err    error
}

// batcher applies what waits in one transaction: each reconciler waits for its own object, and
// while a transaction is written the next ones gather. It runs in the leader only.
type batcher struct {
	store store.Store
	set   string
	jobs  chan *job
}

func newBatcher(s store.Store, set string) *batcher {
	return &batcher{store: s, set: set, jobs: make(chan *job)}
}

// apply puts an object into the store. An object of another set is a *[store.SetError].
func (b *batcher) apply(ctx context.Context, o v1.Object) (store.Change, error) {
	return b.do(ctx, &job{key: o.Head().Key(), object: o})
}

// remove takes an object out of the store. It is no error when the store does not have it, or
// has it as part of another set: then it stays there.
func (b *batcher) remove(ctx context.Context, key v1.Key) error {
	_, err := b.do(ctx, &job{key: key})
	return err
}

func (b *batcher) do(ctx context.Context, j *job) (store.Change, error) {
	j.done = make(chan outcome, 1)
	select {
	case b.jobs <- j:
	case <-ctx.Done():
		return store.Change{}, context.Cause(ctx)
	}
	select {
	case out := <-j.done:
		return out.change, out.err
	case <-ctx.Done():
		return store.Change{}, context.Cause(ctx)
	}
}

// Start implements manager.Runnable.
func (b *batcher) Start(ctx context.Context) error {
	var left []*job // it fits no longer into the batch that was written
	for {
		batch := left
		if left = nil; len(batch) == 0 {
			select {
			case j := <-b.jobs:
				batch = append(batch, j)
			case <-ctx.Done():
				return nil
			}
		}
		batch = b.gather(batch)
		batch, left = distinct(batch)
		b.write(ctx, batch)
	}
}

// gather takes what waits.
func (b *batcher) gather(batch []*job) []*job {
	for len(batch) < maxBatch {
		select {
		case j := <-b.jobs:
			batch = append(batch, j)
		default:
			return batch
		}
	}
	return batch
}

// distinct leaves the second job of a key for the next batch.
func distinct(batch []*job) (first, rest []*job) {
	seen := map[v1.Key]bool{}
	for _, j := range batch {
		if seen[j.key] {
			rest = append(rest, j)
			continue
		}
		seen[j.key] = true
		first = append(first, j)
	}
	return first, rest
}

func (b *batcher) write(ctx context.Context, batch []*job) {
	var apply, remove []*job
	for _, j := range batch {
		if j.object != nil {
			apply = append(apply, j)
		} else {
			remove = append(remove, j)
		}
	}
	b.applyAll(ctx, apply)
	b.removeAll(ctx, remove)
}

// applyAll applies objects in one transaction. Those that belong to other sets are left out
// and told so; the others are tried again without them.
func (b *batcher) applyAll(ctx context.Context, jobs []*job) {
	for len(jobs) > 0 {
		objects := make([]v1.Object, len(jobs))
		for i, j := range jobs {
			objects[i] = j.object
		}
		changes, err := b.store.Apply(ctx, objects, store.ApplyOptions{Set: b.set, By: Name, Command: "apply", NoRevision: true})
		if err == nil {
			for i, j := range jobs {
				j.done <- outcome{change: changes[i]}
			}
			return
		}
		owned := map[v1.Key]error{}
		setErrors(err, owned)
		before := len(jobs)
		jobs = slices.DeleteFunc(jobs, func(j *job) bool {
			if owned[j.key] == nil {
				return false
			}
			j.done <- outcome{err: owned[j.key]}
			return true
		})
		if len(jobs) == before { // it is about none of them alone
			for _, j := range jobs {
				j.done <- outcome{err: err}
			}
			return
		}
	}
}

// setErrors gathers every *[store.SetError] of an error.
func setErrors(err error, into map[v1.Key]error) {
	switch e := err.(type) { //nolint:errorlint // it walks the tree itself
	case *store.SetError:
		into[e.Key] = e
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			setErrors(one, into)
		}
	case interface{ Unwrap() error }:
		setErrors(e.Unwrap(), into)
	}
}

func (b *batcher) removeAll(ctx context.Context, jobs []*job) {
	var mine []*job
	for _, j := range jobs {
		r, err := b.store.Get(ctx, j.key)
		var missing *v1.NotFoundError
		switch {
		case errors.As(err, &missing), err == nil && r.Set != b.set:
			j.done <- outcome{}
		case err != nil:
			j.done <- outcome{err: err}
		default:
			mine = append(mine, j)
		}
	}
	if len(mine) == 0 {
		return
	}
	keys := make([]v1.Key, len(mine))
	for i, j := range mine {
		keys[i] = j.key
	}
	_, err := b.store.Delete(ctx, keys, store.DeleteOptions{By: Name})
	for _, j := range mine {
		j.done <- outcome{err: err}
	}
}
