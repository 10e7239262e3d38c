package registry

import (
	"context"

	"toolctl.dev/toolctl/internal/callctx"
)

// Asker asks the person behind a call at once for approval. ok is false if it cannot ask, for example because the
// client does not support it: the call is then left pending, and d.Reason may say why. An error ends the call. An Asker
// must be safe for concurrent use, and must return soon after ctx ends.
type Asker = callctx.Asker

// WithAsker returns a context whose calls use ask to ask for approval. A nil ask removes the Asker of ctx.
func WithAsker(ctx context.Context, ask Asker) context.Context { return callctx.WithAsker(ctx, ask) }
