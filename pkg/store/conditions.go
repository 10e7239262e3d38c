package store

import (
	"context"
	"time"
)

// Conditions store since when the conditions of objects have their status.
type Conditions interface {
	// Turned stores the current status of conditions and returns since when each condition has it: the time at which
	// that status was stored first after a different one. The times of deleted objects are forgotten. Backends
	// implement the steps with [TurnsOf].
	Turned(ctx context.Context, seen []Seen) ([]time.Time, error)
}

// Seen is an observed condition of an object.
type Seen struct {
	// UID is the UID of the object; Type and Status are as in a condition of api/v1.
	UID, Type, Status string
	// Since is when the condition changed, if known. Default: when it is first observed.
	Since time.Time
	// First says that the status is the initial one, which is not stored until the condition has had another status.
	First bool
}

// Turn is a status of a condition with its start time.
type Turn struct {
	UID, Type, Status string
	Since             time.Time // in microseconds
}

// TurnsOf returns since when each condition has its status, and the turns to store. noted are the stored turns of these
// objects.
func TurnsOf(noted []Turn, seen []Seen, now time.Time) (since []time.Time, turned []Turn) {
	last := make(map[[2]string]Turn, len(noted))
	for _, t := range noted {
		last[[2]string{t.UID, t.Type}] = t
	}
	for _, s := range seen {
		before, known := last[[2]string{s.UID, s.Type}]
		at := s.Since
		switch {
		case known && before.Status == s.Status:
			at = before.Since
		case !known && s.First && !at.IsZero():
		default:
			if at.IsZero() || known && at.Before(before.Since) {
				at = now
			}
			at = time.UnixMicro(at.UnixMicro()).UTC()
			turned = append(turned, Turn{s.UID, s.Type, s.Status, at})
		}
		since = append(since, at)
	}
	return since, turned
}
