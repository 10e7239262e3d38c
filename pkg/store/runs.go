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
	// ID is up to 64 letters and digits.
	ID string `json:"id"`
	// Prompt names the prompt that is played, for a list.
	Prompt string `json:"prompt"`
	// Updated is when it was put last, by the clock of the store; what a caller sets is ignored.
	Updated time.Time `json:"updated"`
	// State is what the run needs to go on: its transcript, unmasked. A list does not have it.
	State []byte `json:"-"`
}

// Bounds of the runs that a store keeps.
const (
	MaxRuns     = 1000
	MaxRunBytes = 64 << 20
)

// ErrRunsFull says that a store keeps as many runs as it may. Nothing was changed.
var ErrRunsFull = errors.New("too many runs are pending already")

// Runs are the agent runs that wait for approval. A run is here until it is deleted; who may go on
// with one is for [Leases] to say.
type Runs interface {
	// PutRun keeps a run, in the place of an earlier one of its ID. It is on the disk when PutRun
	// returns. The error is [ErrRunsFull] when MaxRuns others are kept.
	PutRun(ctx context.Context, r Run) error
	// GetRun returns the run of an id. The error is a [v1.NotFoundError].
	GetRun(ctx context.Context, id string) (Run, error)
	// ListRuns returns all runs without their states, the one that was put last at the end.
	ListRuns(ctx context.Context) ([]Run, error)
	// DeleteRun forgets the run of an id. The error is a [v1.NotFoundError].
	DeleteRun(ctx context.Context, id string) error
}

// Check refuses a run that no store keeps. Backends ask it.
func (r *Run) Check() error {
	switch {
	case r.ID == "" || len(r.ID) > 64 || strings.Trim(r.ID, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") != "":
		return fmt.Errorf("run %q: expected an id of up to 64 letters and digits", clip.Bytes(r.ID, 64))
	case len(r.State) > MaxRunBytes:
		return fmt.Errorf("run %s has %d bytes: at most %d are kept", r.ID, len(r.State), MaxRunBytes)
	}
	return nil
}

// NoRun is the error for a run that is not there.
func NoRun(id string) error { return &v1.NotFoundError{Kind: "Run", Name: clip.Bytes(id, 64)} }
