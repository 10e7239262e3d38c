package v1

import (
	"context"
	"encoding/json"
)

// ReasonApproval is the reason of a [PendingToolInfo] whose call waits until a
// person approves it, because a policy's require_approval names its tool.
const ReasonApproval = "requires_approval"

// Decision is what a person decided on a call that needs approval.
type Decision struct {
	// Approved says that the call may go on.
	Approved bool
	// By names who decided; empty when it is not known.
	By string
	// Reason is why, in the words of who decided; empty when none was given.
	Reason string
	// Args are the arguments as they were edited, a JSON object; nil leaves them
	// as they were called. They are checked like those of any call.
	Args json.RawMessage
}

// Asker asks the person behind a call, at once, whether it may go on. ok is
// false when it cannot ask, for example because the client has no means for it:
// the call is then left pending. An error ends the call. It may be called by
// many goroutines at once, and must return soon after ctx ends.
type Asker func(ctx context.Context, p PendingToolInfo) (d Decision, ok bool, err error)

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
