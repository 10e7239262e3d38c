package store

import (
	"errors"
	"fmt"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

var (
	// ErrNewer is returned by [Open] for a store that a newer version of toolctl has written.
	ErrNewer = errors.New("written by a newer toolctl")
	// ErrDamaged is returned by every method if the file is not a toolctl store or cannot be read any more.
	ErrDamaged = errors.New("not a store of toolctl, or damaged")
	// ErrBusy is returned if another process kept the store locked for the whole of [Options.BusyTimeout]. Nothing was
	// changed.
	ErrBusy = errors.New("locked by another process")
	// ErrUnavailable is returned if the database of a store cannot be reached or does not answer. A running change may
	// or may not have been made.
	ErrUnavailable = v1.ErrStoreUnavailable
	// ErrFull is returned if the disk is full. Nothing was changed.
	ErrFull = errors.New("the disk is full")
	// ErrLimit is returned if the store would grow beyond [Options.MaxBytes]. Nothing was changed.
	ErrLimit = errors.New("the store has reached its size limit")
	// ErrReadOnly is returned if the file or its folder cannot be written.
	ErrReadOnly = errors.New("the file or its folder cannot be written")
	// ErrTooOld is returned by [Store.Watch] if the first changes are no longer stored, like 410 Gone in Kubernetes.
	// List again and watch from there.
	ErrTooOld = errors.New("resourceVersion is too old")
	// ErrClosed is returned after [Store.Close].
	ErrClosed = errors.New("store is closed")
)

// Reason returns why a store failed, in a form that anyone may read: without names of files and hosts.
func Reason(err error) string {
	for _, known := range []error{ErrUnavailable, ErrBusy, ErrFull, ErrLimit, ErrReadOnly, ErrDamaged, ErrClosed} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return "the log says why"
}

// ConflictError says that an object does not have the version that the caller of [Store.Apply] expected. Nothing was
// changed.
type ConflictError struct {
	Key v1.Key
	// Want is the expected resourceVersion, Found the one in the store; 0 means that the object does not exist.
	Want, Found int64
}

func (e *ConflictError) Error() string {
	switch {
	case e.Found == 0:
		return fmt.Sprintf("%s: conflict: expected resourceVersion %d, but the object no longer exists: read it again", e.Key, e.Want)
	case e.Want == 0:
		return fmt.Sprintf("%s: conflict: expected no such object, found resourceVersion %d: read it again", e.Key, e.Found)
	}
	return fmt.Sprintf("%s: conflict: expected resourceVersion %d, found %d: someone changed it, read it again", e.Key, e.Want, e.Found)
}

// SetError says that an apply would move an object from another set. Nothing was changed.
type SetError struct {
	Key v1.Key
	// Set is the set of the apply, Owner the present set of the object.
	Set, Owner string
}

func (e *SetError) Error() string {
	name := strings.NewReplacer("\n", ", ") // for a set that is named by its paths
	return fmt.Sprintf("%s belongs to set %q, but this apply is for set %q", e.Key, name.Replace(e.Owner), name.Replace(e.Set))
}
