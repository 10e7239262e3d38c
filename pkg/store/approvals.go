package store

import (
	"context"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Approvals are the calls that wait for a person, and those that waited.
type Approvals interface {
	// TakeApproval returns what is kept of the call that p repeats, by the rules of
	// [v1.PendingCall.Repeats], or else keeps p. What is approved is used up by this, and
	// stays used when the machine loses power. With a name nothing is kept, and a call
	// that is not there is a [v1.NotFoundError]. When too many wait, the error is
	// [v1.ErrPendingFull].
	TakeApproval(ctx context.Context, p v1.PendingCall, name string) (v1.PendingCall, error)
	// Approval returns the call of an id. The error is a [v1.NotFoundError].
	Approval(ctx context.Context, id string) (v1.PendingCall, error)
	// ListApprovals returns the calls that wait for approval and the last ones that
	// waited, in the order in which they came.
	ListApprovals(ctx context.Context) ([]v1.PendingCall, error)
	// CountPending returns how many calls wait for approval at a time.
	CountPending(ctx context.Context, now time.Time) (int, error)
	// DecideApproval enters what a person decided at a time, and a line of it in the
	// audit: both or neither. The error is a [v1.NotFoundError], or a [v1.ApprovalError]
	// when the call waits no more.
	DecideApproval(ctx context.Context, id string, d v1.Decision, now time.Time) (v1.PendingCall, error)
	// AwaitApproval returns the call of an id once it waits no more, whichever process
	// decided on it, or when ctx ends. A call that is not there is a [v1.NotFoundError].
	AwaitApproval(ctx context.Context, id string) (v1.PendingCall, error)
}
