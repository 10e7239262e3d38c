package source

import (
	"context"
	"fmt"

	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/manifest"
)

// Newest returns the current revision of the address and its manifests, without using them. The error for a bad
// revision is a [*RevisionError], and the manifests that could be read are returned too.
func (r *Remote) Newest(ctx context.Context) (revision string, set *manifest.Set, err error) {
	r.pulling.Lock()
	defer r.pulling.Unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, maxPull, fmt.Errorf("%s took longer than %s", r.origin, clip.Duration(maxPull)))
	defer cancel()
	if revision, err = r.origin.Head(ctx); err != nil {
		return "", nil, fmt.Errorf("%s: %w", r.origin, err)
	}
	if t := r.tried; t != nil && t.revision == revision && t.failure == nil {
		return revision, t.set, nil
	}
	last, err := r.last(ctx)
	if err != nil {
		return revision, nil, err
	}
	set, _, err = r.judged(ctx, revision, last)
	return revision, set, err
}
