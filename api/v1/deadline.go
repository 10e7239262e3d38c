package v1

import "context"

// Pauser is a deadline that can be stopped while a call waits for a person.
type Pauser interface {
	// Pause stops the deadline until resume is called. Several may stop it at once; it
	// goes on when all have resumed, with the time that was left. A resume counts once.
	Pause() (resume func())
}

type pauserKey struct{}

// PauserKey reports whether key is the one under which a context holds its [Pauser],
// which is the context itself.
func PauserKey(key any) bool {
	_, ok := key.(pauserKey)
	return ok
}

// PauseDeadlines stops the time that the calls of ctx may take until resume is called:
// the time in which a person fills in a form is not the tool's. It does nothing when
// ctx has no deadline that can be stopped.
func PauseDeadlines(ctx context.Context) (resume func()) {
	if p, ok := ctx.Value(pauserKey{}).(Pauser); ok {
		return p.Pause()
	}
	return func() {}
}
