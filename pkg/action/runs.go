package action

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

// How long a lease of a run lasts, and how often it is renewed.
const (
	runLease   = 30 * time.Second
	runRenewal = 10 * time.Second
)

// Runs keeps the agent runs that wait for approval in a store, and lets one at a time go on with
// each: who took a run holds a lease of it, which is renewed until the run is saved or dropped.
// When its process dies, the lease ends by itself within 30 seconds, and the run can be
// taken again as it was saved last. Its methods may be called by many goroutines at once.
type Runs struct {
	store  store.Store
	holder string

	mu      sync.Mutex
	taken   map[string]context.CancelFunc // ends the renewal
	renewal sync.WaitGroup
}

// NewRuns makes the Runs of a store. Close gives back what was taken.
func NewRuns(s store.Store) *Runs {
	return &Runs{store: s, holder: "run-" + rand.Text(), taken: map[string]context.CancelFunc{}}
}

// Save keeps a run, in the place of an earlier one of its ID. One that was taken is given back. The error
// is that of [store.Runs.PutRun], or says that another process took the run meanwhile.
func (r *Runs) Save(ctx context.Context, run store.Run) error {
	if err := r.still(ctx, run.ID); err != nil {
		return err
	}
	err := r.store.PutRun(ctx, run)
	if errors.Is(err, store.ErrRunsFull) {
		err = fmt.Errorf("%w: %d are kept: go on with some, or delete some with 'toolctl runs delete'", err, store.MaxRuns)
	}
	return errors.Join(err, r.release(ctx, run.ID))
}

// Take returns a run and lets nobody else have it until it is saved or dropped. The error is a
// [v1.NotFoundError], with a near id when there is one, or says that the run was taken already.
func (r *Runs) Take(ctx context.Context, id string) (store.Run, error) {
	if (&store.Run{ID: id}).Check() != nil {
		return store.Run{}, store.NoRun(id)
	}
	held, err := r.hold(ctx, id)
	if err != nil {
		return store.Run{}, err
	}
	if !held {
		return store.Run{}, fmt.Errorf("run %s is being resumed already; when the process that does it died, try again in %s", id, runLease)
	}
	if !r.begin(ctx, id) { // the lease is of this process
		return store.Run{}, fmt.Errorf("run %s is being resumed already", id)
	}
	run, err := r.store.GetRun(ctx, id)
	if err != nil {
		return store.Run{}, errors.Join(r.near(ctx, err), r.release(ctx, id))
	}
	return run, nil
}

// begin renews the lease of a run that was taken now; false when it was taken here already.
func (r *Runs) begin(ctx context.Context, id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken[id] != nil {
		return false
	}
	within, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r.taken[id] = cancel
	r.renewal.Go(func() { r.renew(within, id) })
	return true
}

// Drop deletes a run that was taken.
func (r *Runs) Drop(ctx context.Context, id string) error {
	if err := r.still(ctx, id); err != nil {
		return err
	}
	return errors.Join(r.store.DeleteRun(ctx, id), r.release(ctx, id))
}

// Close gives back what was taken, as it was, and waits for the renewals.
func (r *Runs) Close() error {
	r.mu.Lock()
	var ids []string
	for id := range r.taken {
		ids = append(ids, id)
	}
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), runRenewal)
	defer cancel()
	var errs []error
	for _, id := range ids {
		errs = append(errs, r.release(ctx, id))
	}
	r.renewal.Wait()
	return errors.Join(errs...)
}

func (r *Runs) renew(ctx context.Context, id string) {
	tick := time.NewTicker(runRenewal)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_, _ = r.hold(ctx, id) // what was lost is found out by still
		}
	}
}

// hold makes the lease of a run last from now; false when another has it.
func (r *Runs) hold(ctx context.Context, id string) (bool, error) {
	name := "run/" + id
	all, _, err := r.store.HoldLeases(ctx, r.holder, []store.Lease{{Name: name}}, runLease)
	return slices.ContainsFunc(all, func(l store.Lease) bool { return l.Name == name && l.Holder == r.holder }), err
}

// still refuses a run that was taken here, and then by another, too.
func (r *Runs) still(ctx context.Context, id string) error {
	r.mu.Lock()
	_, taken := r.taken[id]
	r.mu.Unlock()
	if !taken {
		return nil
	}
	held, err := r.hold(ctx, id)
	if err == nil && !held {
		err = fmt.Errorf("run %s: its lease ended, and another process goes on with it: what this one did since is not kept", id)
	}
	return err
}

// release ends the lease of a run that was taken.
func (r *Runs) release(ctx context.Context, id string) error {
	r.mu.Lock()
	cancel := r.taken[id]
	delete(r.taken, id)
	r.mu.Unlock()
	if cancel == nil {
		return nil
	}
	cancel()
	return r.store.ReturnLeases(ctx, r.holder, "run/"+id)
}

// near adds the nearest id to the error for a run that is not there.
func (r *Runs) near(ctx context.Context, err error) error {
	missing := (*v1.NotFoundError)(nil)
	if !errors.As(err, &missing) {
		return err
	}
	all, _ := r.store.ListRuns(ctx) // else there is no near one
	ids := make([]string, len(all))
	for i := range all {
		ids[i] = all[i].ID
	}
	if near := v1.Nearest(missing.Name, ids); near != "" {
		missing.Candidates = []string{near}
	}
	return err
}
