// Package callctx has the context values of a call that several packages use: how to ask a person for approval, and a
// deadline that pauses while the person decides.
package callctx

import (
	"context"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Asker asks the person behind a call at once for approval. ok is false if it cannot ask, for example because the
// client does not support it: the call is then left pending, and d.Reason may say why. An error ends the call. An Asker
// must be safe for concurrent use, and must return soon after ctx ends.
type Asker func(ctx context.Context, p v1.PendingToolInfo) (d v1.Decision, ok bool, err error)

type askerKey struct{}

// WithAsker returns a context whose calls use ask to ask for approval. A nil ask removes the Asker of ctx.
func WithAsker(ctx context.Context, ask Asker) context.Context {
	return context.WithValue(ctx, askerKey{}, ask)
}

// AskerOf returns the Asker of ctx, or nil.
func AskerOf(ctx context.Context) Asker {
	ask, _ := ctx.Value(askerKey{}).(Asker)
	return ask
}

// PauseDeadlines stops the deadlines of the calls of ctx until resume is called, because the time in which a person
// fills in a form does not count for the tool. It does nothing if ctx has no [Deadline].
func PauseDeadlines(ctx context.Context) (resume func()) {
	if d, ok := ctx.Value(deadlineKey{}).(*Deadline); ok {
		return d.Pause()
	}
	return func() {}
}
