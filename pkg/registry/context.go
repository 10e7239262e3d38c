package registry

import (
	"context"

	"toolctl.dev/toolctl/internal/callctx"
)

// Asker asks the person behind a call, at once, whether it may go on. ok is
// false when it cannot ask, for example because the client has no means for it:
// the call is then left pending, and d.Reason may say why for its caller. An error ends
// the call. It may be called by many goroutines at once, and must return soon after ctx
// ends.
type Asker = callctx.Asker

// WithAsker returns a context whose calls ask ask for approval. A nil ask
// takes away the one that ctx has.
func WithAsker(ctx context.Context, ask Asker) context.Context { return callctx.WithAsker(ctx, ask) }
