// Package callctx holds what the context of a call carries between packages: how to ask a person
// for approval, and a deadline that pauses while the person decides.
package callctx

import (
	"context"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Asker asks the person behind a call, at once, whether it may go on. ok is
// false when it cannot ask, for example because the client has no means for it:
// the call is then left pending, and d.Reason may say why for its caller. An error ends
// the call. It may be called by many goroutines at once, and must return soon after ctx
// ends.
type Asker func(ctx context.Context, p v1.PendingToolInfo) (d v1.Decision, ok bool, err error)

type askerKey struct{}

// WithAsker returns a context whose calls ask ask for approval. A nil ask
// takes away the one that ctx has.
func WithAsker(ctx context.Context, ask Asker) context.Context {
	return context.WithValue(ctx, askerKey{}, ask)
}

// AskerOf returns the Asker of ctx; nil when it has none.
func AskerOf(ctx context.Context) Asker {
	ask, _ := ctx.Value(askerKey{}).(Asker)
	return ask
}

// PauseDeadlines stops the time that the calls of ctx may take until resume is called:
// the time in which a person fills in a form is not the tool's. It does nothing when
// ctx has no [Deadline].
func PauseDeadlines(ctx context.Context) (resume func()) {
	if d, ok := ctx.Value(deadlineKey{}).(*Deadline); ok {
		return d.Pause()
	}
	return func() {}
}
