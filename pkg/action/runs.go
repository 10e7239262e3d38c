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

// The duration of the lease of a run, and the interval at which it is renewed.
const (
	runLease   = 30 * time.Second
	runRenewal = 10 * time.Second
)

// Runs stores the agent runs that are pending approval, and lets one process at a time resume each: Take holds a lease
// of the run, which is renewed until the run is saved or dropped. If the process dies, the lease ends within 30
// seconds, and another process can take the last saved state. The methods may be called concurrently.
type Runs struct {
	store  store.Store
	holder string

	mu      sync.Mutex
	taken   map[string]context.CancelFunc // cancels the renewal
	renewal sync.WaitGroup
}

// NewRuns returns the Runs of a store. Close releases the runs that are still taken.
func NewRuns(s store.Store) *Runs {
	return &Runs{store: s, holder: "run-" + rand.Text(), taken: map[string]context.CancelFunc{}}
}

// Save stores a run, replaces an earlier one with the same ID, and releases it. The error is that of
// [store.Runs.PutRun], or reports that another process has taken the run in the meantime.
func (r *Runs) Save(ctx context.Context, run store.Run) error {
	if err := r.still(ctx, run.ID); err != nil {
		return err
	}
	err := r.store.PutRun(ctx, run)
	if errors.Is(err, store.ErrRunsFull) {
		err = fmt.Errorf("%w: the limit is %d: resume some, or delete some with 'toolctl runs delete'", err, store.MaxRuns)
	}
	return errors.Join(err, r.release(ctx, run.ID))
}

// Take returns a run and reserves it until it is saved or dropped. The error is a [v1.NotFoundError], with a
// similar ID if there is one, or reports that the run is already taken.
func (r *Runs) Take(ctx context.Context, id string) (store.Run, error) {
	if (&store.Run{ID: id}).Check() != nil {
		return store.Run{}, store.NoRun(id)
	}
	held, err := r.hold(ctx, id)
	if err != nil {
		return store.Run{}, err
	}
	if !held {
		return store.Run{}, fmt.Errorf("run %s is being resumed already; if that process has died, try again in %s", id, runLease)
	}
	if !r.begin(ctx, id) { // this process has the lease
		return store.Run{}, fmt.Errorf("run %s is being resumed already", id)
	}
	run, err := r.store.GetRun(ctx, id)
	if err != nil {
		return store.Run{}, errors.Join(r.near(ctx, err), r.release(ctx, id))
	}
	return run, nil
}

// begin starts renewing the lease of a run, and returns false if this process has already taken the run.
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

// Drop deletes a run after Take.
func (r *Runs) Drop(ctx context.Context, id string) error {
	if err := r.still(ctx, id); err != nil {
		return err
	}
	return errors.Join(r.store.DeleteRun(ctx, id), r.release(ctx, id))
}

// Close releases the taken runs unchanged, and waits for the renewals to end.
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
			_, _ = r.hold(ctx, id) // still detects a lost lease later
		}
	}
}

// hold extends the lease of a run, and returns false if another process has the lease.
func (r *Runs) hold(ctx context.Context, id string) (bool, error) {
	name := "run/" + id
	all, _, err := r.store.HoldLeases(ctx, r.holder, []store.Lease{{Name: name}}, runLease)
	return slices.ContainsFunc(all, func(l store.Lease) bool { return l.Name == name && l.Holder == r.holder }), err
}

// still refuses a run if another process has taken over its lease.
func (r *Runs) still(ctx context.Context, id string) error {
	r.mu.Lock()
	_, taken := r.taken[id]
	r.mu.Unlock()
	if !taken {
		return nil
	}
	held, err := r.hold(ctx, id)
	if err == nil && !held {
		err = fmt.Errorf("run %s: its lease ended, and another process has resumed it: the later work of this process is lost", id)
	}
	return err
}

// release ends the lease of a taken run.
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

// near adds the most similar ID to the error for a run that does not exist.
func (r *Runs) near(ctx context.Context, err error) error {
	missing := (*v1.NotFoundError)(nil)
	if !errors.As(err, &missing) {
		return err
	}
	all, _ := r.store.ListRuns(ctx) // without the list there is no similar ID
	ids := make([]string, len(all))
	for i := range all {
		ids[i] = all[i].ID
	}
	if near := v1.Nearest(missing.Name, ids); near != "" {
		missing.Candidates = []string{near}
	}
	return err
}
