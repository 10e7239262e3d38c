package source

import (
	"context"
	"fmt"

	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/manifest"
)

// Newest returns the revision that the address names now and its manifests, and changes nothing
// of what is used. The error of one that is bad is a [*RevisionError], and what could be read of
// its manifests is returned too.
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
