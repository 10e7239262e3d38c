package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
)

// Run is an agent run that waits for approval.
type Run struct {
	// ID has up to 64 letters and digits.
	ID string `json:"id"`
	// Prompt is the name of the prompt of the run, for lists.
	Prompt string `json:"prompt"`
	// Updated is when the run was stored last, by the clock of the store; a value set by the caller is ignored.
	Updated time.Time `json:"updated"`
	// State is the unmasked transcript, which the run needs to continue. Lists omit it.
	State []byte `json:"-"`
}

// Limits of the runs in a store.
const (
	MaxRuns     = 1000
	MaxRunBytes = 64 << 20
)

// ErrRunsFull says that a store has the maximum number of runs. Nothing was changed.
var ErrRunsFull = errors.New("too many runs are pending already")

// Runs are the agent runs that wait for approval. A run stays until it is deleted; [Leases] decide which process may
// continue it.
type Runs interface {
	// PutRun stores a run and replaces an earlier one with its ID. It is on the disk when PutRun returns. The error is
	// [ErrRunsFull] if MaxRuns others are stored.
	PutRun(ctx context.Context, r Run) error
	// GetRun returns the run with an ID. The error is a [v1.NotFoundError].
	GetRun(ctx context.Context, id string) (Run, error)
	// ListRuns returns all runs without their states, the most recently stored run last.
	ListRuns(ctx context.Context) ([]Run, error)
	// DeleteRun deletes the run with an ID. The error is a [v1.NotFoundError].
	DeleteRun(ctx context.Context, id string) error
}

// Check returns an error for an invalid run. Backends call it.
func (r *Run) Check() error {
	switch {
	case r.ID == "" || len(r.ID) > 64 || strings.Trim(r.ID, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") != "":
		return fmt.Errorf("run %q: expected an id of up to 64 letters and digits", clip.Bytes(r.ID, 64))
	case len(r.State) > MaxRunBytes:
		return fmt.Errorf("run %s has %d bytes: at most %d are kept", r.ID, len(r.State), MaxRunBytes)
	}
	return nil
}

// NoRun returns the error for a missing run.
func NoRun(id string) error { return &v1.NotFoundError{Kind: "Run", Name: clip.Bytes(id, 64)} }
