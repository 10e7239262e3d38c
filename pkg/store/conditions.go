package store

import (
	"context"
	"time"
)

// Conditions remember since when the conditions of objects have their status.
type Conditions interface {
	// Turned notes the status of conditions as they are seen now, and returns for each since
	// when it has it: what was noted first with that status, while nothing else was noted in
	// between. Of an object that is gone nothing is remembered. Backends take the steps from
	// [TurnsOf].
	Turned(ctx context.Context, seen []Seen) ([]time.Time, error)
}

// Seen is a condition of an object as it was seen.
type Seen struct {
	// UID is the object's, Type and Status are as in a condition of api/v1.
	UID, Type, Status string
	// Since is when it turned, where that is known. Zero: when it is seen first.
	Since time.Time
	// First says that it begins with this status, which is not noted until it had another.
	First bool
}

// Turn is a status of a condition, and since when.
type Turn struct {
	UID, Type, Status string
	Since             time.Time // to the microsecond
}

// TurnsOf returns since when each condition has its status, and what is to be noted. noted are
// the turns of these objects up to now.
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
