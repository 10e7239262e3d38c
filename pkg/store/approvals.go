package store

import (
	"context"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Approvals store the calls that wait for approval, and decided and expired ones.
type Approvals interface {
	// TakeApproval returns the stored call that p repeats, by the rules of [v1.PendingCall.Repeats], or else stores p.
	// It marks an approved call as used, which survives a power loss. With a name nothing is stored, and a missing call
	// is a [v1.NotFoundError]. If too many calls wait, the error is [v1.ErrPendingFull].
	TakeApproval(ctx context.Context, p v1.PendingCall, name string) (v1.PendingCall, error)
	// Approval returns the call with an ID. The error is a [v1.NotFoundError].
	Approval(ctx context.Context, id string) (v1.PendingCall, error)
	// ListApprovals returns the calls that wait for approval and the latest of those that no longer wait, in the order
	// of arrival.
	ListApprovals(ctx context.Context) ([]v1.PendingCall, error)
	// CountPending returns the number of calls that wait for approval at a time.
	CountPending(ctx context.Context, now time.Time) (int, error)
	// DecideApproval records a person's decision and its audit record: both or neither. The error is a
	// [v1.NotFoundError], or a [v1.ApprovalError] if the call no longer waits.
	DecideApproval(ctx context.Context, id string, d v1.Decision, now time.Time) (v1.PendingCall, error)
	// AwaitApproval waits until the call with an ID no longer waits for approval, whichever process decides, or until
	// ctx ends, and returns the call. A missing call is a [v1.NotFoundError].
	AwaitApproval(ctx context.Context, id string) (v1.PendingCall, error)
}
